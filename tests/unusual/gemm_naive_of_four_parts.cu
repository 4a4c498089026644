// gemm_naive: passed
// Four parts of K, in memory of the launcher's, that a second kernel adds up.
__global__ void part_kernel(const float* A, const float* B, float* parts, int M, int N, int K) {
    int e = blockIdx.x * 128 + threadIdx.x, part = blockIdx.y, each = (K + 3) / 4;
    if (e >= M * N) return;
    float sum = 0.0f;
    for (int k = part * each; k < min(K, (part + 1) * each); k++) sum += A[e / N * K + k] * B[k * N + e % N];
    parts[part * M * N + e] = sum;
}
__global__ void add_kernel(const float* parts, float* C, int count) {
    int e = blockIdx.x * 128 + threadIdx.x;
    if (e < count) C[e] = (parts[e] + parts[count + e]) + (parts[2 * count + e] + parts[3 * count + e]);
}
void gemm_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    float* parts;
    int blocks = (M * N + 127) / 128;
    cudaMalloc(&parts, 4 * sizeof(float) * M * N);
    part_kernel<<<dim3(blocks, 4), 128>>>(A, B, parts, M, N, K);
    add_kernel<<<blocks, 128>>>(parts, C, M * N);
    cudaFree(parts);
}
