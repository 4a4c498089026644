// Errors by name and text, the last of them, and one device that is no peer of itself.
#include <cstring>

#include "check.cuh"

__global__ void nothing() {}

int main() {
    int wrong = 0;
    const struct {
        cudaError_t error;
        int number;
        const char* name;
    } known[] = {
        {cudaErrorInvalidValue, 1, "cudaErrorInvalidValue"},
        {cudaErrorMemoryAllocation, 2, "cudaErrorMemoryAllocation"},
        {cudaErrorInsufficientDriver, 35, "cudaErrorInsufficientDriver"},
        {cudaErrorPeerAccessAlreadyEnabled, 704, "cudaErrorPeerAccessAlreadyEnabled"},
        {cudaErrorNotPermitted, 800, "cudaErrorNotPermitted"},
        {cudaErrorStreamCaptureUnsupported, 900, "cudaErrorStreamCaptureUnsupported"},
        {cudaErrorUnknown, 999, "cudaErrorUnknown"},
    };
    for (const auto& k : known)
        wrong += k.error != k.number || std::strcmp(cudaGetErrorName(k.error), k.name) ||
                 !std::strlen(cudaGetErrorString(k.error));
    nothing<<<1, 2000>>>();
    wrong += cudaPeekAtLastError() == cudaSuccess;
    wrong += cudaGetLastError() == cudaSuccess;
    wrong += cudaGetLastError() != cudaSuccess;
    void* p;
    wrong += cudaMalloc(&p, size_t(1) << 60) != cudaErrorMemoryAllocation;
    cudaGetLastError();
    int devices = 0, can = 1, mode = -1;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
    CHECK(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, 0));
    wrong += devices < 1 || can || mode == cudaComputeModeProhibited;
    wrong += cudaSetDevice(devices) != cudaErrorInvalidDevice;
    cudaGetLastError();
    nothing<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    return verdict("error_names", wrong);
}
