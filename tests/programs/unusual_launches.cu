// Launches from macros, lambdas and class members, through pointers, tables and templates.
#include <utility>
#include <vector>

#include "check.cuh"

#define LAUNCH(kernel, grid, ...)                     \
    do {                                              \
        kernel<<<(grid), 32, 0, NULL>>>(__VA_ARGS__); \
        CHECK(cudaGetLastError());                    \
    } while (0)
#define LAUNCH_ADD(number, arguments) add_##number<<<1, 32>>> arguments
#define SHARED_TILE(T, name) __shared__ T name[32]

__device__ int touched;

__global__ void touch() {
    if (threadIdx.x == 0) atomicAdd(&touched, 1);
}
__global__ void add_1(int* x, const int* unused) { x[threadIdx.x] += unused ? 100 : 1; }
__global__ void add_2(int* x, const int* unused) { x[threadIdx.x] += unused ? 100 : 2; }

template <int N>
struct Constant {
    static constexpr int value = N;
};
template <typename A, typename B>
struct Both {
    static constexpr int value = A::value + B::value;
};

template <typename Step, bool REVERSE = (3 > 2)>
__global__ void add_reversed(int* x) {
    SHARED_TILE(int, tile);
    volatile __shared__ int *first, steps[1 << 1];
    if (threadIdx.x == 0) {
        first = x;
        steps[1] = Step::value;
    }
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();  // the tile and the pointer are there
    first[threadIdx.x] = tile[REVERSE ? 31 - threadIdx.x : threadIdx.x] + steps[1];
}

class Adder {
   public:
    Adder(int* x, int blocks) : x_(x), blocks_(blocks) {}
    void operator()() const { kernel_<<<blocks_, 32>>>(x_, nullptr); }
    template <class Step>
    void reversed() {
        add_reversed<Step><<<this->blocks_, dim3(64 >> 1)>>>(this->x_);
    }

   private:
    int *x_, blocks_;
    void (*kernel_)(int*, const int*) = add_2;
};

template <typename... Arguments>
void forward(void (*kernel)(Arguments...), Arguments... arguments) {
    (*kernel)<<<{1, 1}, Both<Constant<16>, Both<Constant<8>, Constant<8>>>::value>>>(arguments...);
}

int main() {
    int *x, *y;
    CHECK(cudaMalloc(&x, 32 * sizeof(int)));
    CHECK(cudaMemset(x, 0, 32 * sizeof(int)));

    LAUNCH(add_1, 1, x, nullptr);  // 1
    LAUNCH_ADD(2, (x, nullptr));   // 3
    LAUNCH(touch, 3);              // three blocks, no argument
    const auto add = [&] { add_1<<<1, 32>>>(x, NULL); };
    add();  // 4
    void (*table[])(int*, const int*) = {add_1, add_2};
    int next = 0;
    table[next++]<<<1, 32>>>(x, nullptr);  // 5
    table[next++]<<<1, 32>>>(x, nullptr);  // 7
    Adder adder(x, 1);
    adder();                                                // 9
    adder.reversed<Both<Constant<4>, Constant<7>>>();       // 20
    add_reversed<Constant<(7 >> 1)>, false><<<1, 32>>>(x);  // 23
    forward(add_2, x, (const int*)x);                       // 123: `unused` is not null here
    CHECK(cudaDeviceSynchronize());

    std::vector<int> result(32);
    int touches = -1, wrong = next != 2;
    CHECK(cudaMemcpy(result.data(), x, 32 * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(&touches, touched, sizeof(int)));
    CHECK(cudaGetSymbolAddress((void**)&y, touched));
    for (int value : result) wrong += value != 123;
    std::printf("unusual_launches: x = %d, touched %d times, %d wrong\n", result[0], touches,
                wrong);
    CHECK(cudaFree(x));
    return wrong || touches != 3 || !y;
}
