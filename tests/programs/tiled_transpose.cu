// A transpose by tiles, each with a column more than it needs, so that no two lanes share a bank.
#include "check.cuh"

constexpr int kTile = 32, kRows = 8;

template <bool kInverse>
__global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[kTile][kTile + 1];
    int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
    for (int k = 0; k < kTile; k += kRows)
        if (x < width && y + k < height)
            tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
    __syncthreads();  // the tile is whole
    x = blockIdx.y * kTile + threadIdx.x, y = blockIdx.x * kTile + threadIdx.y;
    for (int k = 0; k < kTile; k += kRows)
        if (x < height && y + k < width)
            out[(y + k) * height + x] = (kInverse ? -1 : 1) * tile[threadIdx.x][threadIdx.y + k];
}

int main() {
    const int width = 50, height = 70;
    const std::vector<float> x = some_floats(width * height);
    float *in = to_device(x), *out = to_device(x);
    const dim3 grid((width + kTile - 1) / kTile, (height + kTile - 1) / kTile);
    transpose<true><<<grid, dim3(kTile, kRows)>>>(in, out, width, height);
    const std::vector<float> got = to_host(out, width * height);
    int wrong = 0;
    for (int r = 0; r < height; ++r)
        for (int c = 0; c < width; ++c) wrong += got[c * height + r] != -x[r * width + c];
    return verdict("tiled_transpose", wrong);
}
