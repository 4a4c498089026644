// Texture fetches, each of what is there.
#include "../case.cuh"

__global__ void beyond_the_texture(cudaTextureObject_t row, float* out) {
    // Beyond the texture, though not beyond the memory, a fetch gives 0 and reads nothing.
    out[threadIdx.x] = tex1Dfetch<float>(row, int(threadIdx.x) - 8);
}
CASE_OF(beyond_the_texture) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {zeros<float>(16), cudaCreateChannelDesc<float>(), 16 * sizeof(float)};
    cudaTextureDesc how = {};
    cudaTextureObject_t row = 0;
    cudaCreateTextureObject(&row, &resource, &how, nullptr);
    beyond_the_texture<<<1, 32>>>(row, zeros<float>(32));
}

__global__ void edges_of_an_array(cudaTextureObject_t array, float* out) {
    out[threadIdx.x] = tex2D<float>(array, threadIdx.x - 8.0f, 2.5f);
}
CASE_OF(edges_of_an_array) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {};
    cudaMallocArray(&resource.res.array.array, &format, 16, 2);
    cudaMemcpy2DToArray(resource.res.array.array, 0, 0, zeros<float>(32), 64, 64, 2,
                        cudaMemcpyDeviceToDevice);
    cudaTextureDesc how = {};
    how.addressMode[0] = cudaAddressModeBorder;
    how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t array = 0;
    cudaCreateTextureObject(&array, &resource, &how, nullptr);
    edges_of_an_array<<<1, 32>>>(array, zeros<float>(32));
}
