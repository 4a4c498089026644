// linear: passed
// a texture begins at a multiple of 512 bytes, and W wherever it is
__global__ void linear_kernel(const float* x, cudaTextureObject_t W, int first, const float* b,
                              float* out, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++)
            sum += x[row * K + k] * tex1Dfetch<float>(W, first + col * K + k);
        out[row * N + col] = sum + b[col];
    }
}

void linear(const float* x, const float* W, const float* b, float* out, int M, int N, int K) {
    size_t late = reinterpret_cast<size_t>(W) % 512;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<char*>(reinterpret_cast<const char*>(W) - late);
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = late + size_t(N) * K * sizeof(float);
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    dim3 block(32, 32);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    linear_kernel<<<grid, block>>>(x, texture, int(late / sizeof(float)), b, out, M, N, K);
    cudaDestroyTextureObject(texture);
}
