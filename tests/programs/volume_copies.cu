// A box of a volume: three-dimensional memory, copies with positions, a fill.
#include "check.cuh"

__global__ void number_cells(cudaPitchedPtr volume, int nx, int ny, int nz) {
    const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    if (x >= nx || y >= ny || z >= nz) return;
    char* row = static_cast<char*>(volume.ptr) + (z * ny + y) * volume.pitch;
    reinterpret_cast<int*>(row)[x] = 100 * z + 10 * y + x;
}

int main() {
    const int nx = 7, ny = 5, nz = 3;
    const cudaExtent extent = make_cudaExtent(nx * sizeof(int), ny, nz);
    cudaPitchedPtr volume;
    CHECK(cudaMalloc3D(&volume, extent));
    CHECK(cudaMemset3D(volume, 0, extent));
    number_cells<<<dim3(ny, nz), 32>>>(volume, nx, ny, nz);
    std::vector<int> box(3 * 2 * 2);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = volume;
    copy.srcPos = make_cudaPos(2 * sizeof(int), 1, 1);
    copy.dstPtr = make_cudaPitchedPtr(box.data(), 3 * sizeof(int), 3, 2);
    copy.extent = make_cudaExtent(3 * sizeof(int), 2, 2);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    int wrong = 0;
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 2; ++y)
            for (int x = 0; x < 3; ++x)
                wrong += box[(z * 2 + y) * 3 + x] != 100 * (z + 1) + 10 * (y + 1) + x + 2;
    CHECK(cudaFree(volume.ptr));
    return verdict("volume_copies", wrong);
}
