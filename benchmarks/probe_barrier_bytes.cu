// What a barrier does that expects fewer bytes than copies bring, or more: tried on the GPU of this
// machine, an sm_90a.
//     nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o probe
//     benchmarks/probe_barrier_bytes.cu
//     ./probe
// Each round brings a tile of x and one of W, as in exercise 11.1, 24,576 bytes together. PTX: a
// phase ends when no arrival is pending and the count of bytes is 0; more bytes than were announced
// leave a negative count. No wait is endless: who waits gives up after PATIENCE cycles.
#include <cstdio>
#include <vector>

#include "../kernels/include/hopper.cuh"

constexpr int BM = 64, BN = 128, BK = 32, ROUNDS = 3, THREADS = 1024;
constexpr int TILES = (BM + BN) * BK * 4;  // bytes that copies bring in a round
constexpr long long PATIENCE = 2'000'000;  // cycles, about a millisecond

struct Seen {
    long long cycles[ROUNDS];    // until the phase had ended; 0: it did not
    int missing[ROUNDS];         // elements that were not there then
    unsigned long long barrier;  // its 64 bits at the end
};

__device__ bool has_ended(Barrier* barrier, int parity) {
    int ended;
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n}\n"
        : "=r"(ended)
        : "r"(address_in_shared(barrier)), "r"(parity)
        : "memory");
    return ended;
}

// x: (BM, ROUNDS * BK), W: (BN, ROUNDS * BK), by their maps: each element is 1 + its round. `bytes`
// are announced in a round. One block.
__global__ void probe_kernel(const __grid_constant__ CUtensorMap x,
                             const __grid_constant__ CUtensorMap W, int bytes, Seen* seen) {
    __shared__ alignas(1024) float tiles[BM + BN][BK];
    __shared__ Barrier full;
    volatile float* elements = &tiles[0][0];
    for (int i = threadIdx.x; i < (BM + BN) * BK; i += THREADS) elements[i] = 0.0f;
    fence_async();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
    }
    __syncthreads();  // the barrier is there, and the tiles are empty
    for (int round = 0; round < ROUNDS; round++) {
        long long begin = clock64(), now = begin;
        if (threadIdx.x == 0) {
            barrier_arrive_expect(&full, bytes);
            load_tile(tiles[0], &x, round * BK, 0, &full);
            load_tile(tiles[BM], &W, round * BK, 0, &full);
        }
        bool ended = false;
        while (!ended && now - begin < PATIENCE) {
            ended = has_ended(&full, round % 2);
            now = clock64();
        }
        int missing = 0;
        for (int i = threadIdx.x; i < (BM + BN) * BK; i += THREADS) {
            missing += elements[i] != 1 + round;
        }
        atomicAdd(&seen->missing[round], missing);
        if (threadIdx.x == 0 && ended) seen->cycles[round] = now - begin;
        while (clock64() - begin < PATIENCE) {
        }  // all bytes have come, whatever was announced
        if (!__syncthreads_and(ended)) break;
    }
    if (threadIdx.x == 0) seen->barrier = *const_cast<volatile Barrier*>(&full);
}

float* matrix(int rows) {
    std::vector<float> values(size_t(rows) * ROUNDS * BK);
    for (size_t i = 0; i < values.size(); i++) values[i] = 1 + i % (ROUNDS * BK) / BK;
    float* copy;
    cudaMalloc(&copy, values.size() * sizeof(float));
    cudaMemcpy(copy, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
    return copy;
}

int main() {
    CUtensorMap x = make_map(matrix(BM), BM, ROUNDS * BK, BM);
    CUtensorMap W = make_map(matrix(BN), BN, ROUNDS * BK, BN);
    cudaDeviceProp card;
    cudaGetDeviceProperties(&card, 0);
    Seen* seen;
    cudaMallocManaged(&seen, sizeof *seen);
    printf("%s; copies bring %d bytes in each of %d rounds\n", card.name, TILES, ROUNDS);
    for (int more : {0, -16, -100, -4096, -TILES / 2, -BN * BK * 4, -TILES, 16, 4096}) {
        *seen = {};
        probe_kernel<<<1, THREADS>>>(x, W, TILES + more, seen);
        cudaError_t error = cudaDeviceSynchronize();
        printf("announced %5d (%+6d):", TILES + more, more);
        for (int round = 0; !error && round < ROUNDS; round++) {
            bool ended = seen->cycles[round];
            if (ended) printf(" ended after %lld cycles,", seen->cycles[round]);
            else printf(" did not end,");
            printf(" %d of %d missing;", seen->missing[round], TILES / 4);
            if (!ended) break;
        }
        printf(" barrier %016llx, %s\n", error ? 0 : seen->barrier, cudaGetErrorString(error));
        if (error) return 1;
    }
}
