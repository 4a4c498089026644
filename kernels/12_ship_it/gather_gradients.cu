constexpr int WARPS = 8;

// argmin, d, normal: (rows), dweight, dbias: (channels). dbias[c] = the sum of d[r], dweight[c] of
// d[r] * normal[r], over the rows whose minimum is at c.
// One thread owns every 8th row for a channel. One block of (32, 8) threads owns 32 channels.
__global__ void gather_gradients_kernel(const int* argmin, const float* d, const float* normal,
                                        float* dweight, float* dbias, int rows, int channels) {
    __shared__ float weights[WARPS][32], biases[WARPS][32];
    int channel = blockIdx.x * 32 + threadIdx.x;
    float w = 0.0f, b = 0.0f;
    // your code here
}

void gather_gradients(const int* argmin, const float* d, const float* normal, float* dweight,
                      float* dbias, int rows, int channels) {
    gather_gradients_kernel<<<(channels + 31) / 32, dim3(32, WARPS)>>>(argmin, d, normal, dweight,
                                                                       dbias, rows, channels);
}
