// Tiles, barriers that count their bytes, and products of warpgroups, each with one thing amiss.
#include "../../../kernels/include/hopper.cuh"
#include "../../../kernels/include/tensor_cores.cuh"
#include "../case.cuh"

using Map = CUtensorMap;
constexpr int BYTES = 64 * 128;  // of a tile: 64 rows of 32 floats

static Map matrix() { return make_map(zeros<float>(256 * 64), 256, 64, 64); }

#define TILES(n) __shared__ __align__(1024) float tiles[n][64][32]
#define INIT(barrier, arrivals)                             \
    if (threadIdx.x == 0) barrier_init(&barrier, arrivals); \
    fence_barriers();                                       \
    __syncthreads()

__global__ void read_before_it_arrives(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // WITH
    }
    __syncthreads();
    out[threadIdx.x] = tiles[0][0][threadIdx.x];  // HAZARD early-read
    barrier_wait(&full, 0);
}
CASE(read_before_it_arrives, 1, 32, matrix(), zeros<float>(32))

__global__ void reads_a_row_before_it_arrives(const float* row, float* out) {
    __shared__ __align__(16) float values[32];
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, sizeof values);
        load_bytes(values, row, sizeof values, &full);  // WITH
    }
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];  // HAZARD early-read
    barrier_wait(&full, 0);
}
CASE(reads_a_row_before_it_arrives, 1, 32, zeros<float>(32), zeros<float>(32))

__global__ void a_row_beyond_its_end(const float* row, float* out) {
    __shared__ __align__(16) float values[32];
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, sizeof values);
        load_bytes(values, row, sizeof values, &full);  // HAZARD out-of-bounds
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = values[threadIdx.x];
}
CASE(a_row_beyond_its_end, 1, 32, zeros<float>(20), zeros<float>(32))

__global__ void one_warp_does_not_wait(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // WITH
    }
    if (threadIdx.x < 32) barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x % 32];  // HAZARD async-race
}
CASE(one_warp_does_not_wait, 1, 64, matrix(), zeros<float>(64))

__global__ void waits_for_the_other_parity(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // WITH
    }
    __syncthreads();
    barrier_wait(&full, 1);
    out[threadIdx.x] = tiles[0][0][threadIdx.x];  // HAZARD early-read
    barrier_wait(&full, 0);
}
CASE(waits_for_the_other_parity, 1, 32, matrix(), zeros<float>(32))

__global__ void expects_too_few_bytes(const __grid_constant__ Map map, float* out) {
    TILES(2);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);  // WITH
        load_tile(tiles[0], &map, 0, 0, &full);
        load_tile(tiles[1], &map, 32, 0, &full);  // HAZARD byte-count
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x] + tiles[1][0][threadIdx.x];
}
CASE(expects_too_few_bytes, 1, 32, matrix(), zeros<float>(32))

__global__ void expects_too_many_bytes(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, 2 * BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);
    }
    barrier_wait(&full, 0);  // HAZARD deadlock/counting-barrier
    out[threadIdx.x] = tiles[0][0][threadIdx.x];
}
CASE(expects_too_many_bytes, 1, 32, matrix(), zeros<float>(32))

__global__ void fewer_arrive_than_are_expected(float* out) {
    __shared__ Barrier done;
    INIT(done, 33);
    barrier_arrive(&done);
    barrier_wait(&done, 0);  // HAZARD deadlock/counting-barrier
    out[threadIdx.x] = 1;
}
CASE(fewer_arrive_than_are_expected, 1, 32, zeros<float>(32))

__global__ void never_initialised(float* out) {
    __shared__ Barrier done;
    barrier_arrive(&done);  // HAZARD invalid-barrier
    barrier_wait(&done, 0);
    out[threadIdx.x] = 1;
}
CASE(never_initialised, 1, 32, zeros<float>(32))

__global__ void initialised_again(float* out) {
    __shared__ Barrier done;
    INIT(done, 33);
    barrier_arrive(&done);
    __syncthreads();
    if (threadIdx.x == 0) barrier_init(&done, 32);  // HAZARD invalid-barrier
    __syncthreads();
    out[threadIdx.x] = 1;
}
CASE(initialised_again, 1, 32, zeros<float>(32))

__global__ void handed_back_before_it_is_read(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full, empty;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init(&empty, 32);
        fence_barriers();
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < 2; ++i) {
            barrier_wait(&empty, i ^ 1);
            barrier_arrive_expect(&full, BYTES);
            load_tile(tiles[0], &map, 0, 64 * i, &full);  // HAZARD async-race
        }
    } else if (threadIdx.x < 32) {
        float sum = 0;
        for (int i = 0; i < 2; ++i) {
            barrier_wait(&full, i);
            barrier_arrive(&empty);
            sum += tiles[0][0][threadIdx.x];  // WITH
        }
        out[threadIdx.x] = sum;
    }
}
CASE(handed_back_before_it_is_read, 1, 64, matrix(), zeros<float>(32))

__global__ void filled_again_and_nobody_asked(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    float sum = 0;
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x == 0) {
            barrier_arrive_expect(&full, BYTES);
            load_tile(tiles[0], &map, 0, 64 * i, &full);  // HAZARD async-race
        }
        barrier_wait(&full, i);
        sum += tiles[0][0][threadIdx.x];  // WITH
    }
    out[threadIdx.x] = sum;
}
CASE(filled_again_and_nobody_asked, 1, 32, matrix(), zeros<float>(32))

__global__ void never_waited_for(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // HAZARD missing-wait
    }
    out[threadIdx.x] = 1;
}
CASE(never_waited_for, 1, 32, matrix(), zeros<float>(32))

__global__ void tile_at_an_odd_place(const __grid_constant__ Map map, float* out) {
    TILES(2);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0][4], &map, 0, 0, &full);  // HAZARD misaligned/tile
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][4][threadIdx.x];
}
CASE(tile_at_an_odd_place, 1, 32, matrix(), zeros<float>(32))

__global__ void matrix_that_cuda_refuses(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // HAZARD invalid-map
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x];
}
CASE(matrix_that_cuda_refuses, 1, 32, make_map(zeros<float>(64 * 33), 64, 33, 64), zeros<float>(32))

__global__ void more_threads_than_come(float* out) {
    if (threadIdx.x < 64) sync_some(1, 96);  // HAZARD deadlock/counting-barrier
    out[threadIdx.x] = 1;
}
CASE(more_threads_than_come, 1, 128, zeros<float>(128))

// --- Stores --------------------------------------------------------------------------------------

__global__ void stored_without_a_fence(const __grid_constant__ Map map) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;  // WITH
    __syncthreads();
    if (threadIdx.x == 0) {
        store_tile_async(&map, tiles[0], 0, 0);  // HAZARD missing-fence
        commit_stores();
        wait_for_stores<0>();
    }
}
CASE(stored_without_a_fence, 1, 128, matrix())

__global__ void stored_before_the_others_have_written(const __grid_constant__ Map map) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;  // WITH
    fence_async();
    if (threadIdx.x == 127) {
        store_tile_async(&map, tiles[0], 0, 0);  // HAZARD async-race
        commit_stores();
        wait_for_stores<0>();
    }
}
CASE(stored_before_the_others_have_written, 1, 128, matrix())

__global__ void store_never_committed(const __grid_constant__ Map map) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_tile_async(&map, tiles[0], 0, 0);  // HAZARD missing-commit
        wait_for_stores<0>();
    }
}
CASE(store_never_committed, 1, 128, matrix())

__global__ void store_never_waited_for(const __grid_constant__ Map map) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_tile_async(&map, tiles[0], 0, 0);  // HAZARD missing-wait
        commit_stores();
    }
}
CASE(store_never_waited_for, 1, 128, matrix())

__global__ void overwritten_while_it_is_stored(const __grid_constant__ Map map) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_tile_async(&map, tiles[0], 0, 0);  // WITH
        commit_stores();
        tiles[0][0][0] = 2;  // HAZARD early-write
        wait_for_stores<0>();
    }
}
CASE(overwritten_while_it_is_stored, 1, 128, matrix())

// --- Products ------------------------------------------------------------------------------------

#define ONES() \
    for (int i = threadIdx.x; i < 2 * 64 * 32; i += blockDim.x) (&tiles[0][0][0])[i] = 1

__global__ void product_without_a_fence_of_the_tile(float* out) {
    TILES(2);
    ONES();  // WITH
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD missing-fence
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(product_without_a_fence_of_the_tile, 1, 128, zeros<float>(128))

__global__ void product_of_copied_pieces_without_a_fence(const float4* in, float* out) {
    TILES(2);
    for (int i = threadIdx.x; i < 2 * 64 * 8; i += 128)
        copy_async(&reinterpret_cast<float4*>(tiles)[i], &in[i]);  // WITH
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD missing-fence
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(product_of_copied_pieces_without_a_fence, 1, 128, zeros<float4>(2 * 64 * 8), zeros<float>(128))

__global__ void product_without_a_fence_of_the_registers(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD missing-fence/registers
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(product_without_a_fence_of_the_registers, 1, 128, zeros<float>(128))

__global__ void sums_touched_and_no_fence_behind(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    for (int i = 0; i < 2; ++i) {
        wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), i);  // HAZARD missing-fence/registers
        wgmma_commit();
        wgmma_wait<0>();
        d[i] *= 2;
    }
    out[threadIdx.x] = d[0];
}
CASE(sums_touched_and_no_fence_behind, 1, 128, zeros<float>(128))

__global__ void product_never_committed(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD missing-commit
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];  // HAZARD missing-commit
}
CASE(product_never_committed, 1, 128, zeros<float>(128))

__global__ void sums_read_before_the_wait(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // WITH
    wgmma_commit();
    out[threadIdx.x] = d[0];  // HAZARD early-read/registers
    wgmma_wait<0>();
}
CASE(sums_read_before_the_wait, 1, 128, zeros<float>(128))

__global__ void sums_read_while_a_later_group_adds(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);
    wgmma_commit();
    wgmma_tf32(d, make_descriptor(&tiles[0][0][8]), make_descriptor(&tiles[1][0][8]), 1);  // WITH
    wgmma_commit();
    wgmma_wait<1>();
    out[threadIdx.x] = d[0];  // HAZARD early-read/registers
    wgmma_wait<0>();
}
CASE(sums_read_while_a_later_group_adds, 1, 128, zeros<float>(128))

__global__ void sums_written_before_the_wait(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // WITH
    wgmma_commit();
    d[3] = 1;  // HAZARD early-write
    wgmma_wait<0>();
    out[threadIdx.x] = d[0] + d[3];
}
CASE(sums_written_before_the_wait, 1, 128, zeros<float>(128))

__global__ void factors_written_before_the_wait(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    unsigned a[4] = {};
    wgmma_fence();
    wgmma_f16(d, a, make_descriptor(tiles[0]), 0);  // WITH
    wgmma_commit();
    a[2] = threadIdx.x;  // HAZARD early-write
    wgmma_wait<0>();
    out[threadIdx.x] = d[0] + float(a[2]);
}
CASE(factors_written_before_the_wait, 1, 128, zeros<float>(128))

// Of four warps that read one tile, each must know of what it reads.
__global__ void one_warp_waits_for_another_tile(const __grid_constant__ Map map, float* out) {
    TILES(2);
    __shared__ Barrier full[2];
    INIT(full[0], 1);
    INIT(full[1], 1);
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) {
            barrier_arrive_expect(&full[i], BYTES);
            load_tile(tiles[i], &map, 0, 0, &full[i]);  // WITH
        }
    if (threadIdx.x < 96) barrier_wait(&full[0], 0);
    barrier_wait(&full[1], 0);
    float d[32];
    unsigned a[4] = {};
    wgmma_fence();
    wgmma_f16(d, a, make_descriptor(tiles[0]), 0);  // HAZARD early-read
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(one_warp_waits_for_another_tile, 1, 128, matrix(), zeros<float>(128))

__global__ void one_warp_has_no_fence(float* out) {
    TILES(1);
    for (int i = threadIdx.x; i < 64 * 32; i += 128) tiles[0][i / 32][i % 32] = 1;  // WITH
    __syncthreads();
    if (threadIdx.x < 96) fence_async();
    float d[32];
    unsigned a[4] = {};
    wgmma_fence();
    wgmma_f16(d, a, make_descriptor(tiles[0]), 0);  // HAZARD missing-fence
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(one_warp_has_no_fence, 1, 128, zeros<float>(128))

__global__ void factors_written_and_no_fence_behind(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    unsigned a[4] = {};
    wgmma_fence();
    for (int i = 0; i < 2; ++i) {
        wgmma_f16(d, a, make_descriptor(tiles[0]), i);  // HAZARD missing-fence/registers
        wgmma_commit();
        wgmma_wait<0>();
        a[i] = threadIdx.x;
    }
    out[threadIdx.x] = d[0] + float(a[0]);
}
CASE(factors_written_and_no_fence_behind, 1, 128, zeros<float>(128))

__global__ void product_never_waited_for(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD missing-wait
    wgmma_commit();
    out[threadIdx.x] = 1;
}
CASE(product_never_waited_for, 1, 128, zeros<float>(128))

__global__ void tile_overwritten_before_the_wait(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // WITH
    wgmma_commit();
    __syncthreads();
    tiles[0][threadIdx.x / 2][threadIdx.x % 2 * 4] = 2;  // HAZARD early-write
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(tile_overwritten_before_the_wait, 1, 128, zeros<float>(128))

__global__ void tile_fetched_into_before_the_wait(const __grid_constant__ Map map, float* out) {
    TILES(2);
    __shared__ Barrier full;
    INIT(full, 1);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // WITH
    wgmma_commit();
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // HAZARD early-write
    }
    wgmma_wait<0>();
    barrier_wait(&full, 0);
    out[threadIdx.x] = d[0];
}
CASE(tile_fetched_into_before_the_wait, 1, 128, matrix(), zeros<float>(128))

__global__ void product_of_a_tile_under_way(const __grid_constant__ Map map, float* out) {
    TILES(2);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, 2 * BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // WITH
        load_tile(tiles[1], &map, 0, 0, &full);  // WITH
    }
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);  // HAZARD early-read
    wgmma_commit();
    wgmma_wait<0>();
    barrier_wait(&full, 0);
    out[threadIdx.x] = d[0];
}
CASE(product_of_a_tile_under_way, 1, 128, matrix(), zeros<float>(128))

__global__ void described_at_an_odd_row(float* out) {
    TILES(3);
    ONES();
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[2][0][0])[i] = 1;
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0][1]), make_descriptor(tiles[1]), 0);  // HAZARD invalid-descriptor
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(described_at_an_odd_row, 1, 128, zeros<float>(128))

__global__ void tile_that_is_too_short(float* out) {
    __shared__ __align__(1024) float tiles[1][64][32], half[32][32];
    for (int i = threadIdx.x; i < 64 * 32; i += 128) (&tiles[0][0][0])[i] = 1;
    for (int i = threadIdx.x; i < 32 * 32; i += 128) (&half[0][0])[i] = 1;
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(half), 0);  // HAZARD out-of-bounds/shared
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(tile_that_is_too_short, 1, 128, zeros<float>(128))

__global__ void three_warps(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    wgmma_fence();  // HAZARD broken-warpgroup
    wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}
CASE(three_warps, 1, 96, zeros<float>(128))

__global__ void one_warp_stays_away(float* out) {
    TILES(2);
    ONES();
    fence_async();
    __syncthreads();
    float d[32];
    if (threadIdx.x < 96) {
        wgmma_fence();
        wgmma_tf32(d, make_descriptor(tiles[0]), make_descriptor(tiles[1]), 0);
        wgmma_commit();
        wgmma_wait<0>();  // HAZARD broken-warpgroup
        out[threadIdx.x] = d[0];
    }
}
CASE(one_warp_stays_away, 1, 128, zeros<float>(128))

// --- Clusters ------------------------------------------------------------------------------------

__global__ void __cluster_dims__(2) beyond_the_cluster(float* out) {
    __shared__ Barrier done;
    INIT(done, 2);
    cluster_sync();
    if (threadIdx.x == 0) barrier_arrive_at(&done, cluster_rank() + 1);  // HAZARD invalid-rank
    cluster_sync();
    if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
CASE(beyond_the_cluster, 2, 32, zeros<float>(2))

__global__ void __cluster_dims__(2) one_block_hands_nothing_back(float* out) {
    __shared__ Barrier done;
    INIT(done, 2);
    cluster_sync();
    if (threadIdx.x == 0 && cluster_rank() == 0) {
        barrier_arrive_at(&done, 0);
        barrier_arrive_at(&done, 1);
    }
    barrier_wait(&done, 0);  // HAZARD deadlock/counting-barrier
    cluster_sync();
    if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
CASE(one_block_hands_nothing_back, 2, 32, zeros<float>(2))

__global__ void __cluster_dims__(2)
    sent_and_read_too_early(const __grid_constant__ Map map, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    if (threadIdx.x == 0) barrier_arrive_expect(&full, BYTES);
    cluster_sync();
    if (threadIdx.x == 0 && cluster_rank() == 0)
        load_tile_multicast(tiles[0], &map, 0, 0, &full, 3);  // WITH
    cluster_sync();
    if (cluster_rank() == 1) out[threadIdx.x] = tiles[0][0][threadIdx.x];  // HAZARD early-read
    barrier_wait(&full, 0);
    cluster_sync();
}
CASE(sent_and_read_too_early, 2, 32, matrix(), zeros<float>(32))

__global__ void waits_for_a_phase_by_its_number(float* out) {
    __shared__ Barrier done;
    INIT(done, 32);
    for (int phase = 0; phase < 3; phase++) {
        barrier_arrive(&done);
        barrier_wait(&done, phase);  // HAZARD invalid-barrier
    }
    out[threadIdx.x] = 1;
}
CASE(waits_for_a_phase_by_its_number, 1, 32, zeros<float>(32))

__global__ void __launch_bounds__(384, 1) nobody_gives_registers_back(float* out) {
    if (threadIdx.x >= 128) more_registers<232>();  // HAZARD deadlock/registers
    out[threadIdx.x] = 1.0f;
}
CASE(nobody_gives_registers_back, 1, 384, zeros<float>(384))

__global__ void copied_by_another_way(const __grid_constant__ Map map, float* matrix, float* out) {
    TILES(1);
    __shared__ Barrier full;
    INIT(full, 1);
    for (int i = threadIdx.x; i < 64 * 64; i += 32) matrix[i] = 1.0f;  // WITH
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_arrive_expect(&full, BYTES);
        load_tile(tiles[0], &map, 0, 0, &full);  // HAZARD missing-fence/global
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = tiles[0][0][threadIdx.x];
}
CASE_OF(copied_by_another_way) {
    float* matrix = zeros<float>(64 * 64);
    copied_by_another_way<<<1, 32>>>(make_map(matrix, 64, 64, 64), matrix, zeros<float>(32));
}
