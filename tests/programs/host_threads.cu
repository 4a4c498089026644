// Several host threads, each with its stream and its memory, launch at the same time.
#include <thread>

#include "check.cuh"

__global__ void collatz(const int* start, int* steps, int n) {
    __shared__ int longest;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();  // it is 0
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int count = 0;
    if (i < n)
        for (long long v = start[i]; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++count;
    atomicMax(&longest, count);
    __syncthreads();  // of the whole block
    if (i < n) steps[i] = 1000 * longest + count;
}

int steps_from(long long v) {
    int count = 0;
    for (; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++count;
    return count;
}

int main() {
    const int threads = 4, rounds = 5, n = 256;
    std::vector<int> wrong(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([=, &wrong] {
            CHECK(cudaSetDevice(0));
            std::vector<int> start(n);
            for (int i = 0; i < n; ++i) start[i] = 1 + t * n + i;
            cudaStream_t stream;
            CHECK(cudaStreamCreate(&stream));
            int *in = to_device(start), *out = to_device(start);
            for (int r = 0; r < rounds; ++r) collatz<<<4, 64, 0, stream>>>(in, out, n);
            CHECK(cudaStreamSynchronize(stream));
            const std::vector<int> got = to_host(out, n);
            for (int b = 0; b < 4; ++b) {
                int longest = 0;
                for (int i = 64 * b; i < 64 * b + 64; ++i)
                    longest = std::max(longest, steps_from(start[i]));
                for (int i = 64 * b; i < 64 * b + 64; ++i)
                    wrong[t] += got[i] != 1000 * longest + steps_from(start[i]);
            }
            CHECK(cudaFree(in));
            CHECK(cudaFree(out));
        });
    for (std::thread& thread : all) thread.join();
    int sum = 0;
    for (int w : wrong) sum += w;
    return verdict("host_threads", sum);
}
