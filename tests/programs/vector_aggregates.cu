// Vector types as what they are: aggregates, members of unions, plain bytes that groups exchange.
#include <cooperative_groups.h>

#include <cstring>

#include "check.cuh"

union Quad {
    float4 v;
    float a[4];
};
struct Particle {
    float4 place;
    float2 speed;
};
__host__ __device__ inline float4 operator+(float4 a, const float4& b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void quads(const float4* in, float4* out, uint4* words, Particle* particles) {
    const int i = threadIdx.x;
    Quad q;
    q.v = in[i];
    Quad copy = q;
    for (int k = 0; k < 4; ++k) copy.a[k] *= k + 1;
    float4 one = {1.f};
    out[i] = copy.v + one;
    auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    const uint4 mine = uint4{unsigned(i), 1u, 2u, 3u};
    words[i] = warp.shfl(mine, 31 - i);
    Particle p = {in[i], {0.5f, float(i)}};
    particles[i] = p;
}

int main() {
    static_assert(sizeof(float4) == 16 && alignof(float4) == 16 && sizeof(Particle) == 32, "");
    std::vector<float4> in(32);
    for (int i = 0; i < 32; ++i) in[i] = make_float4(i, 1, 2, 3);
    float4 *in_device = to_device(in), *out = to_device(in);
    uint4* words = to_device(std::vector<uint4>(32));
    Particle* particles = to_device(std::vector<Particle>(32));
    quads<<<1, 32>>>(in_device, out, words, particles);
    const std::vector<float4> got = to_host(out, 32);
    const std::vector<uint4> passed = to_host(words, 32);
    const std::vector<Particle> made = to_host(particles, 32);
    int wrong = 0;
    for (int i = 0; i < 32; ++i) {
        wrong += got[i].x != i + 1 || got[i].y != 2 || got[i].z != 6 || got[i].w != 12;
        wrong += passed[i].x != 31u - i || passed[i].w != 3;
        wrong += made[i].place.x != i || made[i].speed.y != i;
    }
    return verdict("vector_aggregates", wrong);
}
