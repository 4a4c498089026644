// What the runtime says about the device, a kernel and itself.
#include "expect.cuh"

template <int N>
__global__ void kernel(float* x) {
    __shared__ float tile[N];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();  // the tile is whole
    x[threadIdx.x] = tile[N - 1 - threadIdx.x];
}

int attribute(cudaDeviceAttr which) {
    int value = -1;
    OK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    int count = 0, device = -1;
    OK(cudaGetDeviceCount(&count));
    EXPECT(count >= 1, true);
    OK(cudaSetDevice(0));
    OK(cudaGetDevice(&device));
    EXPECT(device, 0);
    EXPECT_ERROR(cudaSetDevice(count + 5), cudaErrorInvalidDevice);
    cudaDeviceProp p;
    EXPECT_ERROR(cudaGetDeviceProperties(&p, -1), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
    OK(cudaGetDeviceProperties(&p, 0));
    EXPECT(strlen(p.name) > 0, true);
    EXPECT(p.warpSize, 32);
    EXPECT(p.maxThreadsPerBlock, 1024);
    EXPECT(p.maxThreadsDim[0], 1024);
    EXPECT(p.maxThreadsDim[1], 1024);
    EXPECT(p.maxThreadsDim[2], 64);
    EXPECT(p.maxGridSize[0], 2147483647);
    EXPECT(p.maxGridSize[1], 65535);
    EXPECT(p.maxGridSize[2], 65535);
    EXPECT(p.major >= 7 && p.minor >= 0 && p.minor < 10, true);
    EXPECT(p.multiProcessorCount >= 1, true);
    EXPECT(p.sharedMemPerBlock, 49152u);
    EXPECT(p.sharedMemPerBlockOptin >= p.sharedMemPerBlock, true);
    EXPECT(p.sharedMemPerMultiprocessor >= p.sharedMemPerBlockOptin, true);
    EXPECT(p.regsPerBlock, 65536);
    EXPECT(p.totalConstMem, 65536u);
    EXPECT(p.totalGlobalMem > (size_t(1) << 28), true);
    EXPECT(p.maxThreadsPerMultiProcessor >= 1024, true);
    EXPECT(p.l2CacheSize > 0 && p.memoryBusWidth > 0, true);
    EXPECT(p.unifiedAddressing, 1);
    EXPECT(p.managedMemory, 1);

    EXPECT(attribute(cudaDevAttrMaxThreadsPerBlock), p.maxThreadsPerBlock);
    EXPECT(attribute(cudaDevAttrMaxBlockDimX), 1024);
    EXPECT(attribute(cudaDevAttrMaxBlockDimZ), 64);
    EXPECT(attribute(cudaDevAttrMaxGridDimY), 65535);
    EXPECT(attribute(cudaDevAttrWarpSize), 32);
    EXPECT(attribute(cudaDevAttrMaxSharedMemoryPerBlock), 49152);
    EXPECT(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), int(p.sharedMemPerBlockOptin));
    EXPECT(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
           int(p.sharedMemPerMultiprocessor));
    EXPECT(attribute(cudaDevAttrMultiProcessorCount), p.multiProcessorCount);
    EXPECT(attribute(cudaDevAttrComputeCapabilityMajor), p.major);
    EXPECT(attribute(cudaDevAttrComputeCapabilityMinor), p.minor);
    EXPECT(attribute(cudaDevAttrMaxRegistersPerBlock), 65536);
    EXPECT(attribute(cudaDevAttrClockRate) > 0, true);

    int version = 0;
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version, CUDART_VERSION);
    OK(cudaDriverGetVersion(&version));
    EXPECT(version >= CUDART_VERSION / 1000 * 1000, true);

    cudaFuncAttributes f;
    OK(cudaFuncGetAttributes(&f, kernel<256>));
    EXPECT(f.maxThreadsPerBlock >= 256 && f.maxThreadsPerBlock <= 1024, true);
    int blocks = 0, grid = 0, block = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel<256>, 256, 0));
    EXPECT(blocks >= 4 && blocks <= p.maxThreadsPerMultiProcessor / 256, true);
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel<256>, 0, 0));
    EXPECT(block % 32 == 0 && block >= 32 && block <= 1024 && grid >= 1, true);
    OK(cudaFuncSetCacheConfig(kernel<256>, cudaFuncCachePreferL1));
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
    size_t limit = 0;
    OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    EXPECT(limit >= (1 << 20), true);

    EXPECT(strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue"), 0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"), 0);
    EXPECT(strcmp(cudaGetErrorString(cudaSuccess), "no error"), 0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0);
    EXPECT(
        strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument"),
        0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
                  "an illegal memory access was encountered"),
           0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorAssert), "device-side assert triggered"), 0);
    EXPECT(strcmp(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code"), 0);

    Buffer<float> x(256);
    x[0] = 5;
    x.upload();
    kernel<256><<<1, 256>>>(x.device);
    x.download();
    EXPECT(x[255], 5.0f);
    return finish();
}
