// printf in a kernel: the text that arrives is known to the letter.
#include <string>
#include <unistd.h>

#include "expect.cuh"

__global__ void hello() {
    if (threadIdx.x % 16 == 1)
        printf("block %d thread %d of %u\n", blockIdx.x, threadIdx.x, blockDim.x);
}
__global__ void formats(const char* name) {
    printf("%5d|%-5d|%05d|%x|%o|%c|%%\n", 42, 42, 42, 0xbeef, 8, 'z');
    printf("%lld %llu %ld\n", -1ll << 40, ~0ull, -5l);
    printf("%.3f %8.2f %e %g\n", 3.14159f, -2.5, 12345.678, 0.0001);
    printf("[%s] [%10s]\n", "text", "right");
    printf("no newline, ");
    printf("then one\n");
    printf("thirty-two arguments at most: %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8);
}
__global__ void in_order(int n) {
    for (int i = 0; i < n; ++i) printf("%d;", i);
    printf("\n");
}

// What is written to standard output while `run` runs.
template <class F>
std::string captured(F run) {
    fflush(stdout);
    FILE* file = tmpfile();
    const int kept = dup(1);
    dup2(fileno(file), 1);
    run();
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    std::string text(size_t(lseek(fileno(file), 0, SEEK_END)), '\0');
    lseek(fileno(file), 0, SEEK_SET);
    if (read(fileno(file), &text[0], text.size()) < 0) text = "?";
    fclose(file);
    return text;
}
void same(const std::string& got, const std::string& want) {
    if (!counted(got == want)) printf("printed:\n%swanted:\n%s", got.c_str(), want.c_str());
}
bool holds(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

int main() {
    cudaError_t error = cudaSuccess;
    const std::string lines = captured([&] {
        hello<<<2, 32>>>();
        error = cudaDeviceSynchronize();
    });
    OK(error);
    // In any order, since no block comes before another.
    for (const char* line : {"block 0 thread 1 of 32\n", "block 0 thread 17 of 32\n",
                             "block 1 thread 1 of 32\n", "block 1 thread 17 of 32\n"})
        EXPECT(holds(lines, line), true);
    EXPECT(lines.size(),
           2 * (strlen("block 0 thread 1 of 32\n") + strlen("block 0 thread 17 of 32\n")));

    same(captured([&] {
             formats<<<1, 1>>>(nullptr);
             error = cudaDeviceSynchronize();
         }),
         "   42|42   |00042|beef|10|z|%\n"
         "-1099511627776 18446744073709551615 -5\n"
         "3.142    -2.50 1.234568e+04 0.0001\n"
         "[text] [     right]\n"
         "no newline, then one\n"
         "thirty-two arguments at most: 1 2 3 4 5 6 7 8\n");
    OK(error);

    std::string numbers;
    for (int i = 0; i < 200; ++i) numbers += std::to_string(i) + ";";
    same(captured([&] {
             in_order<<<1, 1>>>(200);
             error = cudaDeviceSynchronize();
         }),
         numbers + "\n");
    OK(error);
    return finish();
}
