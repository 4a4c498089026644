// topk_rows: gate
// a thread for each row puts each element that is large enough where it belongs
#include "sort_key.cuh"

__global__ void topk_rows_kernel(const float* x, float* values, long long* places, int rows,
                                 int channels) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    Key best[32] = {};
    for (int c = 0; c < channels; c++) {
        Key key = key_of(x[size_t(r) * channels + c], c);
        for (int i = 31; i >= 0 && key > best[i]; i--) {
            if (i < 31) best[i + 1] = best[i];
            best[i] = key;
        }
    }
    for (int i = 0; i < 32; i++) {
        int place = place_of(best[i]);
        values[r * 32 + i] = place < 0 ? -INFINITY : x[size_t(r) * channels + place];
        places[r * 32 + i] = place;
    }
}

void topk_rows(const float* x, float* values, long long* places, int rows, int channels) {
    topk_rows_kernel<<<(rows + 31) / 32, 32>>>(x, values, places, rows, channels);
}
