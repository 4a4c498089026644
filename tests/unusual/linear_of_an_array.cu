// linear: no kernel
// W is copied to an array first: by the launcher, as to any other memory
// says: bytes of W was read by kernels
__global__ void linear_kernel(const float* x, cudaTextureObject_t W, const float* b, float* out,
                              int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += x[row * K + k] * tex2D<float>(W, k + 0.5f, col + 0.5f);
        out[row * N + col] = sum + b[col];
    }
}

void linear(const float* x, const float* W, const float* b, float* out, int M, int N, int K) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMallocArray(&resource.res.array.array, &format, K, N);
    cudaMemcpy2DToArray(resource.res.array.array, 0, 0, W, K * sizeof(float), K * sizeof(float), N,
                        cudaMemcpyDeviceToDevice);
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    dim3 block(32, 32);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    linear_kernel<<<grid, block>>>(x, texture, b, out, M, N, K);
    cudaDestroyTextureObject(texture);
    cudaFreeArray(resource.res.array.array);
}
