// bias_hardtanh: passed
// channels go to the device from pinned memory, which waits before it is written again
// fault: wrong clamp range, line 10
__global__ void bias_hardtanh_kernel(const float* x, const float* bias, float* out,
                                     const int* sizes) {
    int channels = *sizes, row = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float v = x[row * channels + c] + bias[c];
    out[row * channels + c] = fminf(fmaxf(v, -1.0f), 1.0f);
}
void bias_hardtanh(const float* x, const float* bias, float* out, int rows, int channels) {
    static int *host = nullptr, *sizes = nullptr;
    if (!host) {
        cudaMallocHost(&host, sizeof(int));
        cudaMalloc(&sizes, sizeof(int));
    }
    cudaStreamSynchronize(0);  // the copy of the call before is done
    *host = channels;
    cudaMemcpyAsync(sizes, host, sizeof(int), cudaMemcpyHostToDevice, 0);
    dim3 grid((channels + 127) / 128, rows);
    bias_hardtanh_kernel<<<grid, 128>>>(x, bias, out, sizes);
}
