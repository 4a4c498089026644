// Normalised coordinates that wrap around, over pitched memory, and texels as fractions of 255.
#include "check.cuh"

__global__ void shift(cudaTextureObject_t texture, float4* out, int width, int height, float by) {
    const int x = threadIdx.x, y = blockIdx.x;
    out[y * width + x] = tex2D<float4>(texture, (x + 0.5f) / width + by, (y + 0.5f) / height);
}

int main() {
    const int width = 32, height = 4;
    std::vector<uchar4> texels(width * height);
    for (int i = 0; i < width * height; ++i)
        texels[i] = make_uchar4(i, 255 - i, i % 2 ? 255 : 0, 51);
    uchar4* memory;
    size_t pitch;
    CHECK(cudaMallocPitch(&memory, &pitch, width * sizeof(uchar4), height));
    CHECK(cudaMemcpy2D(memory, pitch, texels.data(), width * 4, width * 4, height,
                       cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
    how.filterMode = cudaFilterModePoint;
    how.readMode = cudaReadModeNormalizedFloat;
    how.normalizedCoords = 1;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    float4* out = to_device(std::vector<float4>(width * height));
    shift<<<height, width>>>(texture, out, width, height, 1.25f);
    const std::vector<float4> got = to_host(out, width * height);
    int wrong = 0;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const uchar4 t = texels[y * width + (x + width / 4) % width];
            const float4 f = got[y * width + x];
            wrong += differ(f.x, t.x / 255.0f) || differ(f.y, t.y / 255.0f) ||
                     differ(f.z, t.z / 255.0f) || differ(f.w, 0.2f);
        }
    return verdict("texture_wraps", wrong);
}
