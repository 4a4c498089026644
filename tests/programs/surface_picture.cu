// Surfaces: a kernel that turns a picture by 90 degrees, from one array into another.
#include "check.cuh"

__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n) {
    const int x = threadIdx.x, y = blockIdx.x;
    int texel;
    surf2Dread(&texel, from, x * int(sizeof(int)), y);
    surf2Dwrite(texel + 1000, to, (n - 1 - y) * int(sizeof(int)), x);
}

int main() {
    const int n = 16;
    std::vector<int> picture(n * n);
    for (int i = 0; i < n * n; ++i) picture[i] = i;
    cudaArray_t arrays[2];
    cudaSurfaceObject_t surfaces[2];
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaMallocArray(&arrays[k], &format, n, n, cudaArraySurfaceLoadStore));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = arrays[k];
        CHECK(cudaCreateSurfaceObject(&surfaces[k], &resource));
    }
    const size_t row = n * sizeof(int);
    CHECK(
        cudaMemcpy2DToArray(arrays[0], 0, 0, picture.data(), row, row, n, cudaMemcpyHostToDevice));
    turn<<<n, n>>>(surfaces[0], surfaces[1], n);
    std::vector<int> turned(n * n);
    CHECK(
        cudaMemcpy2DFromArray(turned.data(), row, arrays[1], 0, 0, row, n, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) wrong += turned[x * n + n - 1 - y] != picture[y * n + x] + 1000;
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaDestroySurfaceObject(surfaces[k]));
        CHECK(cudaFreeArray(arrays[k]));
    }
    return verdict("surface_picture", wrong);
}
