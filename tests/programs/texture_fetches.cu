// Plain memory read through a texture by index, and the layers of an array.
#include <cstring>

#include "check.cuh"

__global__ void gather(cudaTextureObject_t table, const int* index, int2* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<int2>(table, index[i]);
}
__global__ void layers(cudaTextureObject_t texture, float* out) {
    const int x = threadIdx.x, layer = blockIdx.x;
    out[layer * 4 + x] = tex2DLayered<float>(texture, x + 0.5f, 1.5f, layer);
}

int main() {
    const int n = 100;
    std::vector<int2> pairs(n);
    std::vector<int> index(n);
    for (int i = 0; i < n; ++i) pairs[i] = make_int2(i, -i), index[i] = (i * 37) % n;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = to_device(pairs);
    resource.res.linear.desc = cudaCreateChannelDesc<int2>();
    resource.res.linear.sizeInBytes = n * sizeof(int2);
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t table;
    CHECK(cudaCreateTextureObject(&table, &resource, &how, nullptr));
    int* index_device = to_device(index);
    int2* out = to_device(std::vector<int2>(n));
    gather<<<4, 32>>>(table, index_device, out, n);
    const std::vector<int2> got = to_host(out, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += got[i].x != index[i] || got[i].y != -index[i];

    std::vector<float> stack(4 * 2 * 3);
    for (size_t i = 0; i < stack.size(); ++i) stack[i] = i;
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(4, 2, 3), cudaArrayLayered));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(stack.data(), 16, 4, 2);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(4, 2, 3);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc layered = {};
    layered.resType = cudaResourceTypeArray;
    layered.res.array.array = array;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &layered, &how, nullptr));
    float* rows = to_device(std::vector<float>(12));
    layers<<<3, 4>>>(texture, rows);
    const std::vector<float> second = to_host(rows, 12);
    for (int i = 0; i < 12; ++i) wrong += second[i] != i / 4 * 8 + 4 + i % 4;
    return verdict("texture_fetches", wrong);
}
