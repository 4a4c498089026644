// A picture as a texture: points, straight lines between them, and what lies beyond the border.
#include "check.cuh"

__global__ void sample(cudaTextureObject_t texture, const float2* at, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

int main() {
    const int width = 8, height = 4;
    std::vector<float> picture(width * height);
    for (int i = 0; i < width * height; ++i) picture[i] = i % width + 10.0f * (i / width);
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), width * 4, width * 4, height,
                              cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;

    const std::vector<float2> at = {{2.5f, 1.5f},  {3.0f, 1.5f},   {2.5f, 2.0f},
                                    {-5.0f, 0.5f}, {100.0f, 3.5f}, {6.25f, 0.5f}};
    const std::vector<float> linear = {12, 12.5f, 17, 0, 37, 5.75f}, point = {12, 13, 22, 0, 37, 6};
    float2* at_device = to_device(at);
    float* out = to_device(std::vector<float>(at.size()));
    int wrong = 0;
    for (int filter = 0; filter < 2; ++filter) {
        cudaTextureDesc how = {};
        how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
        how.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
        how.readMode = cudaReadModeElementType;
        cudaTextureObject_t texture = 0;
        CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
        sample<<<1, 32>>>(texture, at_device, out, int(at.size()));
        const std::vector<float> got = to_host(out, at.size());
        for (size_t i = 0; i < at.size(); ++i)
            wrong += differ(got[i], filter ? linear[i] : point[i]);
        CHECK(cudaDestroyTextureObject(texture));
    }
    CHECK(cudaFreeArray(array));
    return verdict("texture_filter", wrong);
}
