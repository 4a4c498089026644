// The kernels of timed_kernels.cuh, each once at a size that fills a card: see calibrate.py.
#include "buffers.cuh"
#include "timed_kernels.cuh"

int main() {
    const int n = 1 << 27, side = 8192;
    const float* in = filled(n);
    float* out = filled(n);
    scale_by_fours(in, out, n);
    every_eighth(in, out, n / 8);
    transpose_plain(in, out, side, side);
    transpose_unpadded(in, out, side, side);
    transpose_padded(in, out, side, side);
    row_sums(in, out, 65536, 2048);
    column_sums(in, out, 2048, 65536);
    row_sums_by_warp(in, out, 65536, 2048);
    block_sums(in, out, n);
    heat_step(in, out, side, side);
    linear_unpadded(in, in + n / 2, out, 4096, 4096, 4096);
    linear_by_fours(in, in + n / 2, out, 4096, 4096, 4096);
    check(cudaDeviceSynchronize());
}
