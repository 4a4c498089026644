// What a texture fetches is a load, of the line that fetches.
#include "../case.cuh"

static cudaTextureObject_t over(const cudaResourceDesc& resource,
                                cudaTextureFilterMode filter = cudaFilterModePoint) {
    cudaTextureDesc how = {};
    how.filterMode = filter;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);
    return texture;
}
static cudaTextureObject_t row_of(float* first, size_t n) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {first, cudaCreateChannelDesc<float>(), n * sizeof(float)};
    return over(resource);
}
static cudaTextureObject_t rows_of(float* first, size_t width, size_t height) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {first, cudaCreateChannelDesc<float>(), width, height,
                            width * sizeof(float)};
    return over(resource, cudaFilterModeLinear);
}

__global__ void fetches_what_nobody_wrote(cudaTextureObject_t row, float* out) {
    out[threadIdx.x] = tex1Dfetch<float>(row, threadIdx.x);  // HAZARD uninitialized/global
}
CASE(fetches_what_nobody_wrote, 1, 32, row_of(fresh<float>(32), 32), zeros<float>(32))

__global__ void fetches_more_than_there_is(cudaTextureObject_t row, float* out) {
    out[threadIdx.x] = tex1Dfetch<float>(row, threadIdx.x + 1);  // HAZARD out-of-bounds
}
CASE(fetches_more_than_there_is, 1, 32, row_of(zeros<float>(32), 40), zeros<float>(32))

__global__ void fetches_what_another_thread_stores(cudaTextureObject_t row, float* data) {
    data[threadIdx.x] = 1.0f;                                     // WITH
    float next = tex1Dfetch<float>(row, (threadIdx.x + 1) % 32);  // HAZARD race
    if (next > 2.0f) data[0] = next;
}
CASE_OF(fetches_what_another_thread_stores) {
    float* data = zeros<float>(32);
    fetches_what_another_thread_stores<<<1, 32>>>(row_of(data, 32), data);
}

// Of the four texels around a point, two are in the last row.
__global__ void filters_more_rows_than_there_are(cudaTextureObject_t rows, float* out) {
    out[threadIdx.x] = tex2D<float>(rows, threadIdx.x + 1.0f, 4.0f);  // HAZARD out-of-bounds
}
CASE(filters_more_rows_than_there_are, 1, 8, rows_of(zeros<float>(64), 16, 5), zeros<float>(8))

__global__ void fetches_an_array_nobody_wrote(cudaTextureObject_t array, float* out) {
    out[threadIdx.x] = tex2D<float>(array, threadIdx.x, 1);  // HAZARD uninitialized/global
}
CASE_OF(fetches_an_array_nobody_wrote) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {};
    cudaMallocArray(&resource.res.array.array, &format, 16, 4);
    fetches_an_array_nobody_wrote<<<1, 16>>>(over(resource), zeros<float>(16));
}
