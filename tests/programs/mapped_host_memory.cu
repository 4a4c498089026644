// Kernels that read and write the host's own memory: allocated mapped, and registered afterwards.
#include "check.cuh"

__global__ void twice(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i];
}

int main() {
    const int n = 300;
    CHECK(cudaSetDeviceFlags(cudaDeviceMapHost));
    int *in, *in_device, *out_device;
    std::vector<int> out(n);
    CHECK(cudaHostAlloc(&in, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaHostRegister(out.data(), n * sizeof(int), cudaHostRegisterMapped));
    for (int i = 0; i < n; ++i) in[i] = i;
    CHECK(cudaHostGetDevicePointer((void**)&in_device, in, 0));
    CHECK(cudaHostGetDevicePointer((void**)&out_device, out.data(), 0));
    twice<<<3, 128>>>(in_device, out_device, n);
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += out[i] != 2 * i;
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, in));
    wrong += attributes.type != cudaMemoryTypeHost;
    CHECK(cudaHostUnregister(out.data()));
    CHECK(cudaFreeHost(in));
    return verdict("mapped_host_memory", wrong);
}
