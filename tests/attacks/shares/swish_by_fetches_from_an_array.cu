// swish: gate
// the launcher copies x to an array; thread 0 fetches and computes for its block
// says: lanes per load request
__global__ void busy_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
    volatile int k = 0;
    while (k < 9) k = k + 1;
}
__global__ void swish_kernel(cudaTextureObject_t x, float* out, int n) {
    __shared__ float held[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        for (int t = 0; t < 256 && i + t < n; t++) {
            float v = tex2D<float>(x, (i + t) % 1024 + 0.5f, (i + t) / 1024 + 0.5f);
            held[t] = v / (1.0f + expf(-v));
        }
    __syncthreads();
    if (i < n) out[i] = held[threadIdx.x];
}
void swish(const float* x, float* out, int n) {
    int blocks = (n + 255) / 256, rows = n / 1024;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMallocArray(&resource.res.array.array, &format, 1024, rows + 1);
    if (rows)
        cudaMemcpy2DToArray(resource.res.array.array, 0, 0, x, 4096, 4096, rows,
                            cudaMemcpyDeviceToDevice);
    if (n % 1024)
        cudaMemcpy2DToArray(resource.res.array.array, 0, rows, x + rows * 1024, 4096,
                            n % 1024 * sizeof(float), 1, cudaMemcpyDeviceToDevice);
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    busy_kernel<<<blocks, 256>>>(x, out, n);
    swish_kernel<<<blocks, 256>>>(texture, out, n);
    cudaDestroyTextureObject(texture);
    cudaFreeArray(resource.res.array.array);
}
