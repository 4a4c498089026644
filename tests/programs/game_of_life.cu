// Generations on a torus: bytes, modular neighbours, two buffers that change places.
#include <utility>

#include "check.cuh"

__host__ __device__ inline unsigned char next(const unsigned char* now, int x, int y, int n) {
    int around = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) around += now[(y + dy + n) % n * n + (x + dx + n) % n];
    return around == 3 || (around == 2 && now[y * n + x]);
}
__global__ void live(const unsigned char* now, unsigned char* then, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) then[y * n + x] = next(now, x, y, n);
}

int main() {
    const int n = 30, generations = 12;
    std::vector<unsigned char> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) a[i] = i * i % 7 < 3;
    unsigned char *now = to_device(a), *then = to_device(b);
    for (int g = 0; g < generations; ++g) {
        live<<<dim3(4, 4), dim3(8, 8)>>>(now, then, n);
        std::swap(now, then);
        for (int i = 0; i < n * n; ++i) b[i] = next(a.data(), i % n, i / n, n);
        std::swap(a, b);
    }
    const std::vector<unsigned char> got = to_host(now, n * n);
    int wrong = 0;
    for (int i = 0; i < n * n; ++i) wrong += got[i] != a[i];
    return verdict("game_of_life", wrong);
}
