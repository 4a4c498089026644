// Forces between all pairs, tile by tile through shared memory, with float4 and rsqrtf.
#include "check.cuh"

__global__ void forces(const float4* bodies, float3* pull, int n) {
    __shared__ float4 tile[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int first = 0; first < n; first += 64) {
        const int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();  // the tile is whole
        for (int k = 0; k < 64; ++k) {
            const float x = tile[k].x - me.x, y = tile[k].y - me.y, z = tile[k].z - me.z;
            const float inverse = rsqrtf(x * x + y * y + z * z + 0.01f);
            const float f = tile[k].w * inverse * inverse * inverse;
            sum.x += f * x, sum.y += f * y, sum.z += f * z;
        }
        __syncthreads();  // all have used it
    }
    if (i < n) pull[i] = sum;
}

int main() {
    const int n = 150;
    const std::vector<float> r = some_floats(3 * n);
    std::vector<float4> bodies(n);
    for (int i = 0; i < n; ++i)
        bodies[i] = make_float4(r[3 * i], r[3 * i + 1], r[3 * i + 2], 1 + i % 3);
    float4* in = to_device(bodies);
    float3* out = to_device(std::vector<float3>(n));
    forces<<<3, 64>>>(in, out, n);
    const std::vector<float3> got = to_host(out, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) {
            const double x = bodies[j].x - bodies[i].x, y = bodies[j].y - bodies[i].y;
            const double z = bodies[j].z - bodies[i].z, d = x * x + y * y + z * z + 0.01;
            sum += bodies[j].w * x / (d * std::sqrt(d));
        }
        wrong += differ(got[i].x, float(sum), 1e-3f);
    }
    return verdict("n_bodies", wrong);
}
