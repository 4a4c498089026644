// What Hopper adds (sm_90a): copies of whole tiles, barriers in shared memory that count arrivals
// and bytes, products that four warps give at once. One function for each instruction.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef EMU_INLINE
#    include "emulator/hopper.h"  // the same functions, without a GPU
#else

using Barrier = unsigned long long;  // an mbarrier: in shared memory

__device__ inline unsigned address_in_shared(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// --- Barriers ------------------------------------------------------------------------------------
// A phase of a barrier ends when all arrivals came, and all bytes that were announced. Phases have
// parities 0, 1, 0, 1 ...

// One thread calls it, then fence_barriers(); then __syncthreads() or cluster_sync().
__device__ inline void barrier_init(Barrier* barrier, int arrivals) {
    // PTX: mbarrier.init.shared::cta.b64 [barrier], arrivals;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_in_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// What was initialised is seen by the copy engine and by the other blocks of the cluster.
__device__ inline void fence_barriers() {
    // PTX: fence.mbarrier_init.release.cluster;
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

// Before it says that a tile may be overwritten, use what you have read of it: a load that is under
// way does not hold an arrival back, and copies do not wait for it.
__device__ inline void barrier_arrive(Barrier* barrier) {
    // PTX: mbarrier.arrive.shared::cta.b64 _, [barrier];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address_in_shared(barrier))
                 : "memory");
}

// One arrival, and so many bytes that copies will bring before the phase may end.
__device__ inline void barrier_arrive_expect(Barrier* barrier, int bytes) {
    // PTX: mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(
                     address_in_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Arrives at the same barrier of the block `rank` of the cluster. It says that reads are done, and
// hands no writes over, so the default .release.cta will do: with .release.cluster a warp waits for
// all of its memory each time.
__device__ inline void barrier_arrive_at(Barrier* barrier, int rank) {
    // PTX: mapa.shared::cluster.u32 there, barrier, rank;
    //      mbarrier.arrive.shared::cluster.b64 _, [there];
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(address_in_shared(barrier)),
        "r"(rank)
        : "memory");
}

// Waits until the phase of this parity has ended.
__device__ inline void barrier_wait(Barrier* barrier, int parity) {
    // PTX: again: mbarrier.try_wait.parity.shared::cta.b64 done, [barrier], parity;
    //      @!done bra again;
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}\n" ::"r"(address_in_shared(barrier)),
        "r"(parity)
        : "memory");
}

// --- The copy engine -----------------------------------------------------------------------------

// A tile of a matrix, global -> shared memory. `map` says matrix, tile and swizzle; `col` and `row`
// are the tile's first element. Its bytes count at `barrier`. What lies outside becomes 0. One
// thread calls it.
__device__ inline void load_tile(void* tile, const CUtensorMap* map, int col, int row,
                                 Barrier* barrier) {
    // PTX: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    //      [tile], [map, {col, row}], [barrier];
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];\n" ::"r"(address_in_shared(tile)),
        "l"(map), "r"(col), "r"(row), "r"(address_in_shared(barrier))
        : "memory");
}

// The same for all blocks of the cluster whose bit of `blocks` is set: the same place in each one's
// shared memory, and its bytes count at the same barrier in each.
__device__ inline void load_tile_multicast(void* tile, const CUtensorMap* map, int col, int row,
                                           Barrier* barrier, unsigned short blocks) {
    // PTX: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    //      .multicast::cluster [tile], [map, {col, row}], [barrier], blocks;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(address_in_shared(tile)),
        "l"(map), "r"(col), "r"(row), "r"(address_in_shared(barrier)), "h"(blocks)
        : "memory");
}

// `bytes` that lie in a row, global -> shared memory: a multiple of 16, as both addresses are. They
// count at `barrier`. One thread calls it.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier* barrier) {
    // PTX: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    //      [to], [from], bytes, [barrier];
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];\n" ::"r"(address_in_shared(to)),
        "l"(from), "r"(bytes), "r"(address_in_shared(barrier))
        : "memory");
}

// A tile, shared -> global memory; what lies outside of the matrix is left out. After
// fence_async() by all who wrote the tile, and a barrier. One thread calls it.
__device__ inline void store_tile_async(const CUtensorMap* map, const void* tile, int col,
                                        int row) {
    // PTX: cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {col, row}], [tile];
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n" ::"l"(map),
        "r"(col), "r"(row), "r"(address_in_shared(tile))
        : "memory");
}

__device__ inline void commit_stores() {
    // PTX: cp.async.bulk.commit_group;
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

// Waits until at most MOST groups of stores still read shared memory.
template <int MOST>
__device__ inline void wait_for_stores() {
    // PTX: cp.async.bulk.wait_group.read MOST;
    asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(MOST) : "memory");
}

// What this thread wrote to shared memory is seen by the copy engine and by the tensor cores.
__device__ inline void fence_async() {
    // PTX: fence.proxy.async.shared::cta;
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// The same of global memory: what this thread wrote there, or has learned that others did.
__device__ inline void fence_async_global() {
    // PTX: fence.proxy.async.global;
    asm volatile("fence.proxy.async.global;\n" ::: "memory");
}

// Ahead of its first use: the map itself is fetched.
__device__ inline void prefetch(const CUtensorMap* map) {
    // PTX: prefetch.tensormap [map];
    asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// --- Products of four warps ----------------------------------------------------------------------

// Where a tile lies, for a product: rows of 128 bytes along K, swizzled by 128 bytes, as
// load_tile() leaves them. The tile begins at a multiple of 1,024 bytes; `tile` may lie 32, 64 or
// 96 behind it.
__device__ inline unsigned long long make_descriptor(const void* tile) {
    // bits 0-13: address / 16, 16-29: not used here, 32-45: bytes from 8 rows to the next / 16,
    // 62-63: 1, a swizzle of 128 bytes
    unsigned long long address = (address_in_shared(tile) & 0x3ffff) >> 4;
    return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// The same for wgmma_f16_mn: rows of 128 bytes along N, 8 of them in 1,024 bytes, 16 of them at
// once. `chunk`: the bytes from 64 columns to the next 64.
__device__ inline unsigned long long make_descriptor_mn(const void* tile, int chunk) {
    // bits 16-29: bytes from 64 columns to the next / 16, 32-45: bytes from 8 rows to the next / 16
    unsigned long long address = (address_in_shared(tile) & 0x3ffff) >> 4;
    return address | (unsigned long long)(chunk >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// Before the first product, and after registers that a product reads or adds to were written.
__device__ inline void wgmma_fence() {
    // PTX: wgmma.fence.sync.aligned;
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ inline void wgmma_commit() {
    // PTX: wgmma.commit_group.sync.aligned;
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

// Waits until at most MOST groups of products are under way: before their sums or tiles are
// touched.
template <int MOST>
__device__ inline void wgmma_wait() {
    // PTX: wgmma.wait_group.sync.aligned MOST;
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(MOST) : "memory");
}

// The lists of 32, 64 and 128 registers, in the text of the instruction and as its operands.
#    define TEN(t)                                                                             \
        "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t \
        "8, %" #t "9, "
#    define NAMES_32 TEN() TEN(1) TEN(2) "%30, %31"
#    define NAMES_64 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60, %61, %62, %63"
#    define NAMES_100 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)
#    define NAMES_128 NAMES_100 TEN(10) TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#    define FLOATS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#    define FLOATS_16(d, i) \
        FLOATS_4(d, i), FLOATS_4(d, i + 4), FLOATS_4(d, i + 8), FLOATS_4(d, i + 12)
#    define FLOATS_32(d, i) FLOATS_16(d, i), FLOATS_16(d, i + 16)
#    define FLOATS_64(d, i) FLOATS_32(d, i), FLOATS_32(d, i + 32)
#    define FLOATS_128(d, i) FLOATS_64(d, i), FLOATS_64(d, i + 64)

// d = a * b + (add ? d : 0), begun and not waited for. a: 64 rows, b: N rows, each of 32 bytes
// along K; make_descriptor() says where. With warp = threadIdx.x / 32 % 4, thread t owns
// d[4 * j + 2 * h + e] of row 16 * warp + 8 * h + lane / 4, column 8 * j + lane % 4 * 2 + e.
// All 128 threads must call it; the first of their warps has a number that 4 divides.
// PTX: wgmma.mma_async.sync.aligned.m64nNkK.f32.T.T d, a, b, add, 1, 1 [, 0, 0];
//      1, 1: neither is negated; 0, 0, of 16 bits alone: both lie along K
#    define WGMMA(name, n, k, type, registers, last, a_at, b_at, add_at)                           \
        __device__ inline void name(float (&d)[registers], unsigned long long a,                   \
                                    unsigned long long b, int add) {                               \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                              \
                         ", 0;\n"                                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k" #k ".f32." #type "." #type     \
                         " {" NAMES_##registers "}, %" #a_at ", %" #b_at ", p, 1, 1" last ";\n}\n" \
                         : FLOATS_##registers(d, 0)                                                \
                         : "l"(a), "l"(b), "r"(add));                                              \
        }
WGMMA(wgmma_f16, 64, 16, f16, 32, ", 0, 0", 32, 33, 34)
WGMMA(wgmma_f16, 128, 16, f16, 64, ", 0, 0", 64, 65, 66)
WGMMA(wgmma_f16, 256, 16, f16, 128, ", 0, 0", 128, 129, 130)
WGMMA(wgmma_bf16, 64, 16, bf16, 32, ", 0, 0", 32, 33, 34)
WGMMA(wgmma_bf16, 128, 16, bf16, 64, ", 0, 0", 64, 65, 66)
WGMMA(wgmma_bf16, 256, 16, bf16, 128, ", 0, 0", 128, 129, 130)
WGMMA(wgmma_tf32, 64, 8, tf32, 32, "", 32, 33, 34)
WGMMA(wgmma_tf32, 128, 8, tf32, 64, "", 64, 65, 66)
WGMMA(wgmma_tf32, 256, 8, tf32, 128, "", 128, 129, 130)
#    undef WGMMA
// The same where a is in registers: 64 rows of 16 halves. With warp and lane as above, a[0] holds
// row 16 * warp + lane / 4, columns lane % 4 * 2 and the next; a[1] row + 8; a[2] and a[3] the same
// rows, 8 columns on. They must not be used, either, before the product has been waited for.
// wgmma_f16_mn takes a tile whose rows lie along N ("MN-major"); make_descriptor_mn() says where.
// PTX: wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T d, a, b, add, 1, 1, mn;
//      mn: 0 where b lies along K, 1 where it lies along N
#    define WGMMA(name, type, mn, n, registers, a0, a1, a2, a3, b_at, add_at)              \
        __device__ inline void name(float (&d)[registers], const unsigned (&a)[4],         \
                                    unsigned long long b, int add) {                       \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                      \
                         ", 0;\n"                                                          \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type \
                         " {" NAMES_##registers "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3  \
                                                "}, %" #b_at ", p, 1, 1, " #mn ";\n}\n"    \
                         : FLOATS_##registers(d, 0)                                        \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));  \
        }
#    define WGMMAS(name, type, mn)                             \
        WGMMA(name, type, mn, 64, 32, 32, 33, 34, 35, 36, 37)  \
        WGMMA(name, type, mn, 128, 64, 64, 65, 66, 67, 68, 69) \
        WGMMA(name, type, mn, 256, 128, 128, 129, 130, 131, 132, 133)
WGMMAS(wgmma_f16, f16, 0)
WGMMAS(wgmma_bf16, bf16, 0)
WGMMAS(wgmma_f16_mn, f16, 1)
#    undef WGMMAS
#    undef WGMMA
#    undef TEN
#    undef NAMES_32
#    undef NAMES_64
#    undef NAMES_100
#    undef NAMES_128
#    undef FLOATS_4
#    undef FLOATS_16
#    undef FLOATS_32
#    undef FLOATS_64
#    undef FLOATS_128

// --- Warps with tasks of their own, blocks in clusters -------------------------------------------

// Gives registers back, or takes more: N of them for each thread from here on, a multiple of 8 from
// 24 to 256. All warps of the warpgroup must call it.
template <int N>
__device__ inline void fewer_registers() {
    // PTX: setmaxnreg.dec.sync.aligned.u32 N;
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}
template <int N>
__device__ inline void more_registers() {
    // PTX: setmaxnreg.inc.sync.aligned.u32 N;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

// A barrier of `threads` threads of the block, a multiple of 32. `name` is 1 to 15; 0 is that of
// __syncthreads().
__device__ inline void sync_some(int name, int threads) {
    // PTX: barrier.sync name, threads;
    asm volatile("barrier.sync %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}

// The number of this block within its cluster.
__device__ inline int cluster_rank() {
    // PTX: mov.u32 rank, %cluster_ctarank;
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster.
__device__ inline void cluster_sync() {
    // PTX: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;\n" ::
            : "memory");
}

#endif

// --- Host ----------------------------------------------------------------------------------------

// Floats are rounded to TF32 on the way, to the nearest. As ..._FLOAT32 they would come as they
// are, and the tensor core would cut them.
template <class T>
constexpr CUtensorMapDataType type_in_map();
template <>
constexpr CUtensorMapDataType type_in_map<float>() {
    return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
}
template <>
constexpr CUtensorMapDataType type_in_map<__half>() {
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}
template <>
constexpr CUtensorMapDataType type_in_map<__nv_bfloat16>() {
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

// The driver's function that makes maps, asked for once; null where there is none.
inline auto map_encoder() {
    static void* encode = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult result;
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &result);
        return function;
    }();
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode);
}

// Of a matrix (rows, cols), row-major, for tiles of `tile_rows` rows, at most 256, by 128 bytes,
// swizzled by 128 bytes. The matrix begins at a multiple of 16 bytes, and so does each row. `type`
// says what the copy engine makes of the elements.
// A map of all zeros where CUDA refuses: then copies by it fail.
template <class T>
CUtensorMap make_map(const T* matrix, int rows, int cols, int tile_rows,
                     CUtensorMapDataType type = type_in_map<T>()) {
    CUtensorMap map = {};
    if (!map_encoder()) return map;
    cuuint64_t shape[] = {cuuint64_t(cols), cuuint64_t(rows)};
    cuuint64_t stride[] = {cols * sizeof(T)};
    cuuint32_t tile[] = {128 / sizeof(T), cuuint32_t(tile_rows)}, step[] = {1, 1};
    map_encoder()(&map, type, 2, const_cast<T*>(matrix), shape, stride, tile, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}
