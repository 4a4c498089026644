// What the copy engine makes of floats, by the type in the map, asked of the GPU of this machine:
//     nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o probe
//     benchmarks/probe_tile_floats.cu
//     ./probe WORDS TYPE RESULTS
// WORDS: 32 bits each, a multiple of 8192 of them; TYPE: a CUtensorMapDataType as a number, 11 is
// TFLOAT32. tests/calibration/tile_floats.npz keeps words and what an H200 made of them.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../kernels/include/hopper.cuh"

constexpr int ROWS = 256, COLS = 32;  // of a tile

// words: (rows, COLS), by their map; copied: the same. One block owns a tile.
__global__ void copy_kernel(const __grid_constant__ CUtensorMap words, unsigned* copied) {
    __shared__ __align__(1024) unsigned tile[ROWS][COLS];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, sizeof tile);
        load_tile(tile, &words, 0, blockIdx.x * ROWS, &full);
    }
    __syncthreads();  // the barrier is there before anyone waits at it
    barrier_wait(&full, 0);
    for (int i = threadIdx.x; i < ROWS * COLS; i += blockDim.x) {
        int row = i / COLS, col = i % COLS;
        copied[blockIdx.x * ROWS * COLS + i] = tile[row][(col / 4 ^ row % 8) * 4 + col % 4];
    }
}

int main(int, char** arguments) {
    std::vector<unsigned> words;
    FILE* file = fopen(arguments[1], "rb");
    for (unsigned word; file && fread(&word, 4, 1, file) == 1;) words.push_back(word);
    int rows = int(words.size()) / COLS;
    unsigned *from, *to;
    cudaMalloc(&from, words.size() * 4);
    cudaMalloc(&to, words.size() * 4);
    cudaMemcpy(from, words.data(), words.size() * 4, cudaMemcpyHostToDevice);
    auto type = CUtensorMapDataType(atoi(arguments[2]));
    auto map = make_map(reinterpret_cast<float*>(from), rows, COLS, ROWS, type);
    copy_kernel<<<rows / ROWS, 128>>>(map, to);
    cudaError_t error = cudaMemcpy(words.data(), to, words.size() * 4, cudaMemcpyDeviceToHost);
    printf("%s\n", cudaGetErrorString(error));
    file = fopen(arguments[3], "wb");
    fwrite(words.data(), 4, words.size(), file);
    return error ? 1 : 0;
}
