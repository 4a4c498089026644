// Tiles, barriers that count, and products of warpgroups as they should be used.
#include "../../../kernels/include/hopper.cuh"
#include "../case.cuh"

using Map = CUtensorMap;
constexpr int BYTES = 64 * 128;  // of a tile: 64 rows of 32 floats

static Map matrix() { return make_map(zeros<float>(256 * 64), 256, 64, 64); }

#define TILES(n) __shared__ __align__(1024) float tiles[n][64][32]

__global__ void all_wait_for_it(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][threadIdx.x / 32][threadIdx.x % 32];
}
CASE(all_wait_for_it, 1, 128, matrix(), zeros<float>(128))

__global__ void one_waits_and_tells_the_others(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        load_tile(tiles[0], &map, 0, 0, &full);
        barrier_arrive_expect(&full, BYTES);
        barrier_wait(&full, 0);
    }
    __syncthreads();
    out[threadIdx.x] = tiles[0][threadIdx.x / 32][threadIdx.x % 32];
}
CASE(one_waits_and_tells_the_others, 1, 128, matrix(), zeros<float>(128))

// The tile reaches beyond the matrix on two sides.
__global__ void ragged(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 32, 64, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][63][threadIdx.x % 32];
}
CASE(ragged, 1, 128, make_map(zeros<float>(70 * 36), 70, 36, 64), zeros<float>(128))

// A ring of stages, many times round: each reader hands a stage back.
__global__ void readers_hand_back(const __grid_constant__ Map map, float* out, int n) {
    TILES(2);
    __shared__ Barrier full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) barrier_init(&full[s], 1), barrier_init(&empty[s], 96);
        fence_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < n && threadIdx.x == 0; ++i) {
            barrier_wait(&empty[i % 2], i / 2 % 2 ^ 1);
            barrier_arrive_expect(&full[i % 2], BYTES);
            load_tile(tiles[i % 2], &map, 0, i % 4 * 64, &full[i % 2]);
        }
    } else {
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            barrier_wait(&full[i % 2], i / 2 % 2);
            sum += tiles[i % 2][threadIdx.x % 64][threadIdx.x % 32];
            barrier_arrive(&empty[i % 2]);
        }
        out[threadIdx.x] = sum;
    }
}
CASE(readers_hand_back, 1, 128, matrix(), zeros<float>(128), 70)

// One lane hands back for its warp.
__global__ void warps_hand_back(const __grid_constant__ Map map, float* out, int n) {
    TILES(2);
    __shared__ Barrier full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) barrier_init(&full[s], 1), barrier_init(&empty[s], 3);
        fence_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < n && threadIdx.x == 0; ++i) {
            barrier_wait(&empty[i % 2], i / 2 % 2 ^ 1);
            barrier_arrive_expect(&full[i % 2], BYTES);
            load_tile(tiles[i % 2], &map, 0, i % 4 * 64, &full[i % 2]);
        }
    } else {
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            barrier_wait(&full[i % 2], i / 2 % 2);
            sum += tiles[i % 2][threadIdx.x % 64][threadIdx.x % 32];
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&empty[i % 2]);
        }
        out[threadIdx.x] = sum;
    }
}
CASE(warps_hand_back, 1, 128, matrix(), zeros<float>(128), 70)

// Between products the sums are added to others, as a product's own sum is cut.
__global__ void promoted(const __grid_constant__ Map map, float* out, int n) {
    TILES(4);
    __shared__ Barrier full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) barrier_init(&full[s], 1), barrier_init(&empty[s], 1);
        fence_barriers();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int i = 0; i < n && threadIdx.x == 128; ++i) {
            barrier_wait(&empty[i % 2], i / 2 % 2 ^ 1);
            barrier_arrive_expect(&full[i % 2], 2 * BYTES);
            load_tile(tiles[i % 2 * 2], &map, 0, i % 4 * 64, &full[i % 2]);
            load_tile(tiles[i % 2 * 2 + 1], &map, 32, 0, &full[i % 2]);
        }
        return;
    }
    float sums[32] = {}, d[32];
    for (int i = 0; i < n; ++i) {
        barrier_wait(&full[i % 2], i / 2 % 2);
        wgmma_fence();
        for (int k = 0; k < 32; k += 8)
            wgmma_tf32(d, make_descriptor(&tiles[i % 2 * 2][0][k]), make_descriptor(&tiles[i % 2 * 2 + 1][0][k]),
                       k);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x == 0) barrier_arrive(&empty[i % 2]);
        for (int j = 0; j < 32; ++j) sums[j] += d[j];
    }
    out[threadIdx.x] = sums[threadIdx.x % 32];
}
CASE(promoted, 1, 160, matrix(), zeros<float>(128), 6)

// A tile comes, four warps make two of it, four others multiply these; each hands on to the next.
__global__ void split_on_the_way(const __grid_constant__ Map map, float* out, int n) {
    TILES(3);  // as it comes; what is made of it
    __shared__ Barrier full, empty, ready, taken;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init(&empty, 128);
        barrier_init(&ready, 128);
        barrier_init(&taken, 128);
        fence_barriers();
    }
    __syncthreads();
    const int t = threadIdx.x % 128;
    if (threadIdx.x == 256) {
        for (int i = 0; i < n; ++i) {
            barrier_wait(&empty, i % 2 ^ 1);
            barrier_arrive_expect(&full, BYTES);
            load_tile(tiles[0], &map, 0, i % 4 * 64, &full);
        }
    } else if (threadIdx.x >= 256) {
        return;
    } else if (threadIdx.x >= 128) {
        for (int i = 0; i < n; ++i) {
            barrier_wait(&full, i % 2);
            barrier_wait(&taken, i % 2 ^ 1);
            for (int j = t; j < 64 * 32; j += 128) {
                const float x = tiles[0][j / 32][j % 32];
                tiles[1][j / 32][j % 32] = floorf(x);
                tiles[2][j / 32][j % 32] = x - floorf(x);
            }
            fence_async();
            barrier_arrive(&empty);
            barrier_arrive(&ready);
        }
    } else {
        float d[32];
        for (int i = 0; i < n; ++i) {
            barrier_wait(&ready, i % 2);
            wgmma_fence();
            wgmma_tf32(d, make_descriptor(tiles[1]), make_descriptor(tiles[2]), i);
            wgmma_commit();
            wgmma_wait<0>();
            barrier_arrive(&taken);
        }
        out[t] = d[0];
    }
}
CASE(split_on_the_way, 1, 288, matrix(), zeros<float>(128), 6)

// What lies in a row comes beside the tile, and counts at the same barrier.
__global__ void a_row_beside_a_tile(const __grid_constant__ Map map, const float* row, float* out) {
    TILES(1);
    __shared__ __align__(16) float values[32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barriers();
        barrier_arrive_expect(&full, BYTES + sizeof values);
        load_tile(tiles[0], &map, 0, 0, &full);
        load_bytes(values, row, sizeof values, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x] + values[threadIdx.x];
}
CASE(a_row_beside_a_tile, 1, 32, matrix(), zeros<float>(32), zeros<float>(32))

// Two groups under way, each with sums of its own.
__global__ void two_groups(float* out) {
    TILES(2);
    for (int i = threadIdx.x; i < 2 * 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;
    fence_async();
    __syncthreads();
    float d[2][32];
    wgmma_fence();
    wgmma_tf32(d[0], make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);
    wgmma_commit();
    wgmma_tf32(d[1], make_descriptor(tiles[1]), make_descriptor(tiles[0]), 0);
    wgmma_commit();
    wgmma_wait<1>();
    float sum = d[0][0];
    wgmma_wait<0>();
    out[threadIdx.x] = sum + d[1][0];
}
CASE(two_groups, 1, 128, zeros<float>(128))

// A tile is filled again when its store has read it.
__global__ void stored_twice(const __grid_constant__ Map map) {
    TILES(2);
    for (int i = 0; i < 6; ++i) {
        if (threadIdx.x == 0) wait_for_stores<1>();
        sync_some(1, 128);
        for (int j = threadIdx.x; j < 64 * 32; j += 128) (&tiles[i % 2][0][0])[j] = float(i);
        fence_async();
        sync_some(2, 128);
        if (threadIdx.x == 0) {
            store_tile_async(&map, tiles[i % 2], i / 4 * 32, i % 4 * 64);
            commit_stores();
        }
    }
    if (threadIdx.x == 0) wait_for_stores<0>();
}
CASE(stored_twice, 1, 128, matrix())

__global__ void pairs_of_warps(float* out) {
    __shared__ float s[128];
    const int pair = threadIdx.x / 64;
    float sum = 0;
    for (int i = 0; i < 40; ++i) {
        s[threadIdx.x] = float(i);
        sync_some(1 + pair, 64);
        sum += s[threadIdx.x ^ 32];
        sync_some(1 + pair, 64);
    }
    out[threadIdx.x] = sum;
}
CASE(pairs_of_warps, 1, 128, zeros<float>(128))

__global__ void handed_on_by_arrivals(float* out) {
    __shared__ float s[32];
    __shared__ Barrier filled, taken;
    if (threadIdx.x == 0) {
        barrier_init(&filled, 32);
        barrier_init(&taken, 32);
        fence_barriers();
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 40; ++i) {
        if (threadIdx.x < 32) {
            barrier_wait(&taken, i % 2 ^ 1);
            s[threadIdx.x] = float(i);
            barrier_arrive(&filled);
        } else {
            barrier_wait(&filled, i % 2);
            sum += s[threadIdx.x % 32 ^ 1];
            barrier_arrive(&taken);
        }
    }
    out[threadIdx.x] = sum;
}
CASE(handed_on_by_arrivals, 1, 64, zeros<float>(64))

__global__ void initialised_twice(float* out) {
    __shared__ Barrier done;
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x == 0) barrier_init(&done, 32 * (i + 1));
        fence_barriers();
        __syncthreads();
        for (int j = 0; j <= i; ++j) barrier_arrive(&done);
        barrier_wait(&done, 0);
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}
CASE(initialised_twice, 1, 32, zeros<float>(32))

// Without __cluster_dims__ a block is a cluster of its own.
__global__ void alone(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 2);
        fence_barriers();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        barrier_arrive_at(&full, cluster_rank());
        load_tile_multicast(tiles[0], &map, 0, 0, &full, 1);
    }
    barrier_wait(&full, 0);
    out[blockIdx.x * 32 + threadIdx.x] = tiles[0][0][threadIdx.x];
}
CASE(alone, 2, 32, matrix(), zeros<float>(64))

// Each block of a cluster fetches half of a tile for both, many times.
__global__ void __cluster_dims__(2)
    halves_for_both(const __grid_constant__ Map map, float* out, int n) {
    TILES(1);
    __shared__ Barrier full, empty;
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init(&empty, 64);
        fence_barriers();
    }
    cluster_sync();
    float sum = 0;
    if (threadIdx.x == 32) {
        for (int i = 0; i < n; ++i) {
            barrier_wait(&empty, i % 2 ^ 1);
            barrier_arrive_expect(&full, BYTES);
            load_tile_multicast(tiles[0][32 * rank], &map, 0, i % 4 * 64 + 32 * rank, &full, 3);
        }
    } else if (threadIdx.x < 32) {
        for (int i = 0; i < n; ++i) {
            barrier_wait(&full, i % 2);
            sum += tiles[0][threadIdx.x][0] + tiles[0][threadIdx.x + 32][0];
            for (int r = 0; r < 2; ++r) barrier_arrive_at(&empty, r);
        }
        out[blockIdx.x * 32 + threadIdx.x] = sum;
    }
    cluster_sync();
}
CASE(halves_for_both, 4, 64, make_map(zeros<float>(256 * 64), 256, 64, 32), zeros<float>(128), 7)

__global__ void by_an_attribute(float* out) {
    out[blockIdx.x] = float(cluster_rank());
    cluster_sync();
}
CASE_OF(by_an_attribute) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(32);
    config.attrs = &attribute;
    config.numAttrs = 1;
    float* out = zeros<float>(4);
    cudaLaunchKernelEx(&config, by_an_attribute, out);
    float ranks[4];
    cudaMemcpy(ranks, out, sizeof ranks, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 4; ++i)
        if (ranks[i] != float(i % 2)) printf("block %d has rank %g\n", i, ranks[i]), exit(7);
}

__global__ void __launch_bounds__(384, 1) registers_change_hands(float* out) {
    if (threadIdx.x >= 128) more_registers<232>();
    else fewer_registers<40>();
    out[threadIdx.x] = 1.0f;
}
CASE(registers_change_hands, 1, 384, zeros<float>(384))

// Written by threads, read by a copy: a fence of either side joins the two ways.
__global__ void written_and_copied(const __grid_constant__ Map map, float* matrix, float* out,
                                   bool by_writers) {
    TILES(1);
    __shared__ Barrier full;
    if (threadIdx.x == 0) barrier_init(&full, 1);
    fence_barriers();
    for (int i = threadIdx.x; i < 64 * 64; i += 32) matrix[i] = 1.0f;
    if (by_writers) fence_async_global();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!by_writers) fence_async_global();
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x];
}
CASE_OF(a_fence_of_the_writers) {
    float* matrix = zeros<float>(64 * 64);
    written_and_copied<<<1, 32>>>(make_map(matrix, 64, 64, 64), matrix, zeros<float>(32), true);
}
CASE_OF(a_fence_of_the_reader) {
    float* matrix = zeros<float>(64 * 64);
    written_and_copied<<<1, 32>>>(make_map(matrix, 64, 64, 64), matrix, zeros<float>(32), false);
}

// Factors in registers: read by two products of a group, written anew behind the wait.
__global__ void factors_in_registers(float* out) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) tiles[0][0][i] = 1.0f;
    fence_async();
    __syncthreads();
    float d[32];
    unsigned a[2][4] = {};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 8; ++j) a[j / 4][j % 4] = 0x3c003c00u + threadIdx.x % 2;
        wgmma_fence();
        wgmma_f16(d, a[0], make_descriptor(tiles[0]), i);
        wgmma_f16(d, a[1], make_descriptor(&tiles[0][0][8]), 1);
        wgmma_commit();
        wgmma_wait<0>();
    }
    out[threadIdx.x] = d[0];
}
CASE(factors_in_registers, 1, 128, zeros<float>(128))
