// topk_rows: gate
// a warp reads a row, and its first lane alone puts each element where it belongs
#include "sort_key.cuh"

__global__ void topk_rows_kernel(const float* x, float* values, long long* places, int channels) {
    __shared__ float row[1024];
    __shared__ Key best[33];
    int lane = threadIdx.x;
    best[lane] = 0;
    for (int begin = 0; begin < channels; begin += 1024) {
        int count = min(1024, channels - begin);
        __syncthreads();
        for (int i = lane; i < count; i += 32) {
            row[i] = x[size_t(blockIdx.x) * channels + begin + i];
        }
        __syncthreads();
        for (int i = 0; lane == 0 && i < count; i++) {
            Key key = key_of(row[i], begin + i);
            for (int j = 31; j >= 0 && key > best[j]; j--) {
                best[j + 1] = best[j];
                best[j] = key;
            }
        }
    }
    __syncthreads();
    int place = place_of(best[lane]);
    values[blockIdx.x * 32 + lane] =
        place < 0 ? -INFINITY : x[size_t(blockIdx.x) * channels + place];
    places[blockIdx.x * 32 + lane] = place;
}

void topk_rows(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rows_kernel<<<rows, 32>>>(x, values, places, channels);
}
