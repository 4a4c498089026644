// Primes by a sieve of bits, set with atomicOr; popc counts them, and a ballot packs an answer.
#include "check.cuh"

__global__ void strike(unsigned* composite, int n) {
    const int p = blockIdx.x + 2;
    for (int m = p * (p + int(threadIdx.x)); m < n; m += p * blockDim.x)
        atomicOr(&composite[m / 32], 1u << m % 32);
}
__global__ void count(const unsigned* composite, int words, int* primes) {
    const int w = blockIdx.x * blockDim.x + threadIdx.x;
    const int got = w < words ? __popc(~composite[w]) : 0;
    atomicAdd(primes, got);
}
__global__ void sizes(const unsigned* composite, unsigned* dense, int words) {
    const int w = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned votes = __ballot_sync(~0u, w < words && __popc(~composite[w]) > 7);
    if (threadIdx.x % 32 == 0) dense[w / 32] = votes;
}

int main() {
    const int n = 2048, words = n / 32;
    unsigned* composite = to_device(std::vector<unsigned>(words));
    int* primes = to_device(std::vector<int>(1));
    unsigned* dense = to_device(std::vector<unsigned>(2));
    strike<<<44, 32>>>(composite, n);
    count<<<1, 64>>>(composite, words, primes);
    sizes<<<1, 64>>>(composite, dense, words);
    std::vector<char> struck(n);
    int expected = 0, wrong = 0;
    for (int p = 2; p < n; ++p) {
        if (!struck[p]) ++expected;
        for (int m = 2 * p; m < n; m += p) struck[m] = 1;
    }
    wrong += to_host(primes, 1)[0] != expected + 2;  // 0 and 1 are not struck either
    const std::vector<unsigned> votes = to_host(dense, 2);
    for (int w = 0; w < words; ++w) {
        int here = w == 0 ? 2 : 0;
        for (int k = w == 0 ? 2 : 0; k < 32; ++k) here += !struck[32 * w + k];
        wrong += (votes[w / 32] >> w % 32 & 1) != (here > 7);
    }
    return verdict("integer_sieve", wrong);
}
