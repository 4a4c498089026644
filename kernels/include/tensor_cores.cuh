// The instructions around a tensor core that a warp gives, sm_80 and newer: one function each.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef EMU_INLINE
#    include "emulator/tensor_cores.h"  // the same functions, without a GPU
#else

// The address of shared memory that PTX asks for: its own kind, 32 bits wide.
__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Four matrices of 8 x 8 halves, shared memory -> registers. Lane i brings the address of row i % 8
// of matrix i / 8: 16 bytes, aligned. Of each matrix, lane i gets row i / 4, columns i % 4 * 2 and
// the next one. All 32 lanes of the warp must call it.
__device__ inline void load_matrices(unsigned (&matrices)[4], const void* row) {
    // PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0, d1, d2, d3}, [row];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The same, each matrix turned around: lane i gets column i / 4, rows i % 4 * 2 and the next one.
__device__ inline void load_transposed(unsigned (&matrices)[4], const void* row) {
    // PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {d0, d1, d2, d3}, [row];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// d += a * b, for a of 16 x 16 halves, b of 16 x 8 and d of 16 x 8 floats. With row = lane / 4 and
// pair = lane % 4 * 2, a lane owns
//   a[0]: (row, pair), a[1]: (row + 8, pair), a[2]: (row, pair + 8), a[3]: (row + 8, pair + 8),
//         each and its right neighbour,
//   b[0]: (pair, row), b[1]: (pair + 8, row), each and the one below it,
//   d[0]: (row, pair), d[1]: (row, pair + 1), d[2] and d[3]: the same of row + 8.
// All 32 lanes of the warp must call it.
__device__ inline void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same for bfloat16.
__device__ inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// d += a * b, for a of 16 x 8 floats, b of 8 x 8 and d of 16 x 8, of which the product sees the
// first 10 bits of the fraction. With row = lane / 4 and col = lane % 4, a lane owns
//   a[0]: (row, col), a[1]: (row + 8, col), a[2]: (row, col + 4), a[3]: (row + 8, col + 4),
//   b[0]: (col, row), b[1]: (col + 4, row), and of d what mma_f16() says.
// All 32 lanes of the warp must call it.
__device__ inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Begins to copy 16 bytes, global -> shared memory, both aligned. Of the source only the first
// `bytes` are read; zeros take the place of the others.
__device__ inline void copy_async(void* to, const void* from, int bytes = 16) {
    // PTX: cp.async.cg.shared.global [to], [from], 16, bytes;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
}

// The copies that this thread began since its last commit are one group.
__device__ inline void commit_copies() {
    // PTX: cp.async.commit_group;
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most the MOST youngest groups of this thread are under way. What others copied
// is there after they waited, and a __syncthreads().
template <int MOST>
__device__ inline void wait_for_copies() {
    // PTX: cp.async.wait_group MOST;
    asm volatile("cp.async.wait_group %0;\n" ::"n"(MOST) : "memory");
}

#endif
