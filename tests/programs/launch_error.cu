// A launch that no GPU accepts: 2048 threads in a block, where 1024 are allowed.
#include <cstdio>

__global__ void never_runs(int* out) { *out = 1; }

int main() {
    int* out;
    cudaMalloc(&out, sizeof(int));
    cudaMemset(out, 0, sizeof(int));
    never_runs<<<1, 2048>>>(out);
    cudaError_t error = cudaGetLastError();
    std::printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));

    int value = -1;
    cudaMemcpy(&value, out, sizeof(int), cudaMemcpyDeviceToHost);
    std::printf("out = %d, and now: %s\n", value, cudaGetErrorString(cudaGetLastError()));
    cudaFree(out);
    return error == cudaErrorInvalidValue && value == 0 ? 3 : 1;
}
