// More than 48 KB of dynamic shared memory is there for a kernel that asks.
#include "expect.cuh"

__global__ void reverse(const int* in, int* out, int n) {
    extern __shared__ int tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = in[i];
    __syncthreads();  // the tile is whole
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[n - 1 - i];
}
template <class T>
__global__ void of_type(T* out, int n) {
    extern __shared__ char raw[];
    T* tile = reinterpret_cast<T*>(raw);
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = T(i);
    __syncthreads();  // the tile is whole
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[n - 1 - i] + T(0.5);
}

int main() {
    int most = 0;
    OK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(most > 49152, true);
    const int n = most / sizeof(int);
    Buffer<int> in(n), out(n);
    for (int i = 0; i < n; ++i) in[i] = 3 * i;
    in.upload();

    reverse<<<1, 256, most>>>(in.device, out.device, n);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);  // it has not asked
    OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    reverse<<<1, 256, most>>>(in.device, out.device, n);
    out.download();
    for (int i = 0; i < n; ++i) EXPECT(out[i], 3 * (n - 1 - i));
    EXPECT_ERROR(
        cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
        cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    reverse<<<1, 32, 1000 * sizeof(int)>>>(in.device, out.device, 1000);  // less is fine
    out.download();
    EXPECT(out[0], 2997);

    Buffer<double> doubles(8000);
    OK(cudaFuncSetAttribute(of_type<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64000));
    OK(cudaFuncSetAttribute(of_type<double>, cudaFuncAttributePreferredSharedMemoryCarveout,
                            cudaSharedmemCarveoutMaxShared));
    of_type<<<1, 128, 64000>>>(doubles.device, 8000);
    doubles.download();
    for (int i = 0; i < 8000; ++i) EXPECT(doubles[i], 7999.5 - i);
    return finish();
}
