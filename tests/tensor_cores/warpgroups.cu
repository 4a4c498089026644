// C = A B^T with what Hopper has: tiles that the copy engine brings, stages that barriers hand from
// a producer to consumers and back, products of warpgroups, tiles that the engine takes away.
// Matrices of sizes that no tile divides; held against sums in double.
#include "../../kernels/include/hopper.cuh"
#include "sums.cuh"

constexpr int ROWS = 128, COLS = 128, STAGES = 2;

template <class T>
struct Of;
template <>
struct Of<__half> {
    static constexpr int STEP = 16;
    static __device__ void product(float (&d)[64], const void* a, const void* b, int add) {
        wgmma_f16(d, make_descriptor(a), make_descriptor(b), add);
    }
};
template <>
struct Of<__nv_bfloat16> {
    static constexpr int STEP = 16;
    static __device__ void product(float (&d)[64], const void* a, const void* b, int add) {
        wgmma_bf16(d, make_descriptor(a), make_descriptor(b), add);
    }
};
template <>
struct Of<float> {
    static constexpr int STEP = 8;
    static __device__ void product(float (&d)[64], const void* a, const void* b, int add) {
        wgmma_tf32(d, make_descriptor(a), make_descriptor(b), add);
    }
};

template <class T>
struct Stage {
    static constexpr int WIDE = 128 / sizeof(T);  // elements in a row of a tile
    T a[ROWS][WIDE], b[COLS][WIDE];
};

// One producer warpgroup, of which one thread works; two consumers with 64 rows each.
template <class T>
__global__ void gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                     const __grid_constant__ CUtensorMap c, int depth) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Barrier full[STAGES], empty[STAGES];
    Stage<T>* stages = reinterpret_cast<Stage<T>*>(memory);
    float (*out)[ROWS][32] = reinterpret_cast<float (*)[ROWS][32]>(stages + STAGES);
    constexpr int WIDE = Stage<T>::WIDE;
    const int row = blockIdx.y * ROWS, col = blockIdx.x * COLS;
    const int tiles = (depth + WIDE - 1) / WIDE, group = threadIdx.x / 128, t = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 2);
        }
        fence_barriers();
    }
    __syncthreads();
    if (group == 0) {
        fewer_registers<40>();
        if (t == 0) {
            prefetch(&a);
            for (int i = 0; i < tiles; ++i) {
                const int s = i % STAGES, phase = i / STAGES % 2;
                barrier_wait(&empty[s], phase ^ 1);
                barrier_arrive_expect(&full[s], sizeof(Stage<T>));
                load_tile(stages[s].a, &a, i * WIDE, row, &full[s]);
                load_tile(stages[s].b, &b, i * WIDE, col, &full[s]);
            }
        }
        return;
    }
    more_registers<232>();
    const int first = (group - 1) * 64;  // of this consumer's rows
    float sums[64];
    for (int i = 0; i < tiles; ++i) {
        const int s = i % STAGES;
        barrier_wait(&full[s], i / STAGES % 2);
        wgmma_fence();
        for (int k = 0; k < WIDE; k += Of<T>::STEP)
            Of<T>::product(sums, &stages[s].a[first][k], &stages[s].b[0][k], i || k);
        wgmma_commit();
        if (i) {
            wgmma_wait<1>();
            if (t == 0) barrier_arrive(&empty[(i - 1) % STAGES]);
        }
    }
    wgmma_wait<0>();
    const int warp = t / 32, lane = t % 32;
    for (int i = 0; i < 64; ++i) {
        const int r = first + 16 * warp + 8 * (i / 2 % 2) + lane / 4;
        const int n = 8 * (i / 4) + lane % 4 * 2 + i % 2;
        // 16-byte pieces change places as the map says
        const int piece = n % 32 / 4 ^ r % 8;
        out[n / 32][r][piece * 4 + n % 4] = sums[i];
    }
    fence_async();
    sync_some(group, 128);
    if (t == 0) {
        for (int part = 0; part < COLS / 32; ++part)
            store_tile_async(&c, out[part][first], col + 32 * part, row + first);
        commit_stores();
        wait_for_stores<0>();
    }
}

// Floats that the copy engine does not round: the tensor cores cut them.
template <class T>
constexpr CUtensorMapDataType as_it_is() {
    return sizeof(T) == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : type_in_map<T>();
}

template <class T>
int wrong(int m, int n, int k) {
    const std::vector<T> a = some<T>(m * k, 1), b = some<T>(n * k, 2);
    T *da = to_device(a), *db = to_device(b);
    float* dc = to_device(std::vector<float>(size_t(m) * n, NAN));
    const int bytes = STAGES * sizeof(Stage<T>) + ROWS * COLS * 4;
    CHECK(cudaFuncSetAttribute(gemm<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    gemm<T><<<dim3((n + COLS - 1) / COLS, (m + ROWS - 1) / ROWS), 384, bytes>>>(
        make_map(da, m, k, ROWS, as_it_is<T>()), make_map(db, n, k, COLS, as_it_is<T>()),
        make_map(dc, m, n, 64, as_it_is<float>()), k);
    CHECK(cudaDeviceSynchronize());
    const int count = count_wrong(a, b, to_host(dc, size_t(m) * n), m, n, k);
    for (void* memory : {(void*)da, (void*)db, (void*)dc}) CHECK(cudaFree(memory));
    return count;
}

int main() {
    const int count = wrong<__half>(130, 132, 200) + wrong<__nv_bfloat16>(66, 132, 264) +
                      wrong<float>(130, 68, 100);
    printf("warpgroups: %d wrong\n", count);
    return count != 0;
}
