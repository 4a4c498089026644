// Races between warps of a block, on shared memory.
#include "../case.cuh"

__global__ void reverse_without_barrier(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;            // HAZARD race
    out[threadIdx.x] = s[63 - threadIdx.x];  // WITH
}
CASE(reverse_without_barrier, 1, 64, zeros<float>(64))

__global__ void next_step_overwrites(const float* in, float* out) {
    __shared__ float s[64];
    float sum = 0;
    for (int step = 0; step < 4; ++step) {
        s[threadIdx.x] = in[64 * step + threadIdx.x];  // HAZARD race
        __syncthreads();
        sum += s[63 - threadIdx.x];  // WITH
    }
    out[threadIdx.x] = sum;
}
CASE(next_step_overwrites, 1, 64, zeros<float>(256), zeros<float>(64))

__global__ void tree_without_barrier(const float* in, float* out) {
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int n = 128; n > 0; n /= 2)
        if (threadIdx.x < n) s[threadIdx.x] += s[threadIdx.x + n];  // HAZARD race
    __syncthreads();
    if (threadIdx.x == 0) *out = s[0];
}
CASE(tree_without_barrier, 1, 256, zeros<float>(256), zeros<float>(1))

__global__ void result_before_barrier(const float* in, float* out) {
    __shared__ float total;
    if (threadIdx.x == 0) total = in[0];  // HAZARD race
    out[threadIdx.x] = total;             // WITH
}
CASE(result_before_barrier, 1, 64, zeros<float>(1), zeros<float>(64))

__global__ void double_buffer_reused(const float* in, float* out) {
    __shared__ float s[2][64];
    int now = 0;
    s[0][threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int step = 1; step < 4; ++step) {
        sum += s[now][63 - threadIdx.x];                    // HAZARD race
        now ^= step & 1;                                    // fails to alternate
        s[now][threadIdx.x] = in[64 * step + threadIdx.x];  // WITH
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
CASE(double_buffer_reused, 1, 64, zeros<float>(256), zeros<float>(64))

__global__ void two_write_one(int* out) {
    __shared__ int winner;
    if (threadIdx.x % 32 == 0) winner = threadIdx.x;  // HAZARD race/stores
    __syncthreads();
    out[threadIdx.x] = winner;
}
CASE(two_write_one, 1, 64, zeros<int>(64))

__global__ void same_value(int* out) {
    __shared__ int flag;
    flag = 1;  // HAZARD race/same-value
    __syncthreads();
    out[threadIdx.x] = flag;
}
CASE(same_value, 1, 64, zeros<int>(64))

__global__ void counter(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    count += 1;  // HAZARD race
    __syncthreads();
    *out = threadIdx.x == 0 ? count : *out;  // HAZARD race
}
CASE(counter, 1, 64, zeros<int>(1))

__global__ void histogram(const int* in, int* out) {
    __shared__ int bins[8];
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    ++bins[in[threadIdx.x] % 8];  // HAZARD race
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
CASE(histogram, 1, 96, zeros<int>(96), zeros<int>(8))

__global__ void atomic_and_plain(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&count, 1);  // HAZARD race
    else if (threadIdx.x == 32) count += 1;      // WITH
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}
CASE(atomic_and_plain, 1, 64, zeros<int>(1))

__global__ void cleared_too_late(int* out) {
    __shared__ int count;
    if (threadIdx.x == 40) count = 0;  // HAZARD race
    atomicAdd(&count, 1);              // WITH
    __syncthreads();
    if (threadIdx.x == 0) *out = count;
}
CASE(cleared_too_late, 1, 64, zeros<int>(1))

__global__ void bytes_overlap(char* out) {
    __shared__ char s[65];
    s[threadIdx.x] = 1;      // HAZARD race/stores
    s[threadIdx.x + 1] = 2;  // WITH
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
CASE(bytes_overlap, 1, 64, zeros<char>(64))

__global__ void halves_of_a_word(short* out) {
    __shared__ short s[64];
    s[threadIdx.x] = 1;                      // HAZARD race
    out[threadIdx.x] = s[63 - threadIdx.x];  // WITH
}
CASE(halves_of_a_word, 1, 64, zeros<short>(64))

__global__ void float4_over_floats(float* out) {
    __shared__ float4 s[16];
    float* flat = reinterpret_cast<float*>(s);
    flat[threadIdx.x] = threadIdx.x;                            // HAZARD race
    if (threadIdx.x < 16) out[threadIdx.x] = s[threadIdx.x].w;  // WITH
}
CASE(float4_over_floats, 1, 64, zeros<float>(16))

__global__ void float4_store_over_read(const float4* in, float* out) {
    __shared__ float4 s[32];
    if (threadIdx.x < 32) s[threadIdx.x] = in[threadIdx.x];             // HAZARD race
    out[threadIdx.x] = reinterpret_cast<float*>(s)[127 - threadIdx.x];  // WITH
}
CASE(float4_store_over_read, 1, 64, zeros<float4>(32), zeros<float>(64))

__device__ void put(float* to, int i, float value) {
    to[i] = value;  // HAZARD race
}
__device__ float get(const float* from, int i) {
    return from[i];  // WITH
}
__global__ void through_functions(float* out) {
    __shared__ float s[64];
    put(s, threadIdx.x, 1);
    put(out, threadIdx.x, get(s, 63 - threadIdx.x));
}
CASE(through_functions, 1, 64, zeros<float>(64))

template <class T, int N>
__global__ void in_template(T* out) {
    __shared__ T s[N];
    s[threadIdx.x] = T(threadIdx.x);            // HAZARD race
    out[threadIdx.x] = s[N - 1 - threadIdx.x];  // WITH
}
CASE_OF(in_template_of_double) { in_template<double, 64><<<1, 64>>>(zeros<double>(64)); }

__global__ void in_lambda(int* out) {
    __shared__ int s[64];
    auto put = [&](int i) { s[i] = i; };  // HAZARD race
    put(threadIdx.x);
    out[threadIdx.x] = s[63 - threadIdx.x];  // WITH
}
CASE(in_lambda, 1, 64, zeros<int>(64))

__global__ void dynamic_array(int* out) {
    extern __shared__ int d[];
    d[threadIdx.x] = threadIdx.x;            // HAZARD race
    out[threadIdx.x] = d[63 - threadIdx.x];  // WITH
}
CASE_DYNAMIC(dynamic_array, 1, 64, 256, zeros<int>(64))

struct Pair {
    int key;
    float value;
};
__global__ void member(float* out) {
    __shared__ Pair pairs[64];
    pairs[threadIdx.x].key = threadIdx.x;
    pairs[threadIdx.x].value = 1;                      // HAZARD race
    out[threadIdx.x] = pairs[63 - threadIdx.x].value;  // WITH
}
CASE(member, 1, 64, zeros<float>(64))

__global__ void barrier_only_before(const float* in, float* out) {
    __shared__ float tile[16][16];
    float sum = 0;
    int x = threadIdx.x, y = threadIdx.y;
    for (int k0 = 0; k0 < 32; k0 += 16) {
        __syncthreads();
        tile[y][x] = in[y * 32 + k0 + x];                // HAZARD race
        for (int k = 0; k < 16; ++k) sum += tile[k][x];  // WITH
    }
    out[y * 16 + x] = sum;
}
CASE(barrier_only_before, 1, dim3(16, 16), zeros<float>(512), zeros<float>(256))

__global__ void shift_in_place(int* data) {
    __shared__ int s[64];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    if (threadIdx.x > 0) s[threadIdx.x] = s[threadIdx.x - 1];  // HAZARD race
    __syncthreads();
    data[threadIdx.x] = s[threadIdx.x];
}
CASE(shift_in_place, 1, 64, zeros<int>(64))

__global__ void scan_in_place(int* data) {
    __shared__ int s[64];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        if (threadIdx.x >= d) s[threadIdx.x] += s[threadIdx.x - d];  // HAZARD race
        __syncthreads();
    }
    data[threadIdx.x] = s[threadIdx.x];
}
CASE(scan_in_place, 1, 64, zeros<int>(64))

__global__ void union_of_types(float* out) {
    __shared__ union {
        int count[64];
        float sum[64];
    } u;
    u.count[threadIdx.x] = 1;     // HAZARD race/stores
    u.sum[63 - threadIdx.x] = 1;  // WITH
    __syncthreads();
    out[threadIdx.x] = u.sum[threadIdx.x];
}
CASE(union_of_types, 1, 64, zeros<float>(64))

__global__ void stencil_written_back(float* data) {
    __shared__ float s[65];
    s[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x == 0) s[64] = 0;
    __syncthreads();
    float own = s[threadIdx.x];
    float right = s[threadIdx.x + 1];    // HAZARD race
    s[threadIdx.x] = (own + right) / 2;  // WITH
    __syncthreads();
    data[threadIdx.x] = s[threadIdx.x];
}
CASE(stencil_written_back, 1, 64, zeros<float>(64))

struct Particle {
    float x, y, z, mass, charge;
};
__global__ void whole_structures(Particle* out) {
    __shared__ Particle s[64];
    s[threadIdx.x] = Particle{1, 2, 3, 4, 5};  // HAZARD race
    out[threadIdx.x] = s[63 - threadIdx.x];    // WITH
}
CASE(whole_structures, 1, 64, zeros<Particle>(64))

__global__ void copied_by_the_library(Particle* out, int n) {
    __shared__ Particle s[64];
    s[threadIdx.x].mass = 1;                       // HAZARD race/stores
    if (threadIdx.x == 0) memset(s, 0, sizeof s);  // HAZARD race/stores
    __syncthreads();
    memcpy(&out[threadIdx.x], &s[threadIdx.x], n);
}
CASE(copied_by_the_library, 1, 64, zeros<Particle>(64), sizeof(Particle))

// Structs in a call: no access stands there but the call itself.
__device__ __noinline__ Pair smaller(Pair a, Pair b) {
    bool less = a.value < b.value || (a.value == b.value && a.key < b.key);
    return less ? a : b;
}
__device__ Particle joined(Particle a, Particle b) {
    float mass = a.mass + b.mass, share = mass > 0 ? b.mass / mass : 0;
    if (share > 1) return a;
    return {a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share, a.z + (b.z - a.z) * share, mass,
            a.charge + b.charge};
}

__global__ void passed_by_value(float* out) {
    __shared__ Pair s[64];
    int t = threadIdx.x;
    s[t] = {t, 1};  // HAZARD race
    Pair mine = {t, 2};
    mine = smaller(mine, s[63 - t]);  // WITH
    mine = smaller(mine, {t + 1, 3});
    out[t] = mine.value;
}
CASE(passed_by_value, 1, 64, zeros<float>(64))

__global__ void returned_into_an_array(float* out) {
    __shared__ Pair s[64];
    int t = threadIdx.x;
    s[t] = {t, 1};
    __syncthreads();
    Pair other = {0, 2};
    s[t] = smaller(other, {t, 3});  // HAZARD race
    other = smaller(other, {1, 1});
    out[t] = s[63 - t].value + other.value;  // WITH
}
CASE(returned_into_an_array, 1, 64, zeros<float>(64))

__global__ void tree_of_particles(Particle* out) {
    __shared__ Particle s[64];
    int t = threadIdx.x;
    s[t] = Particle{1, 2, 3, 4, 5};
    __syncthreads();
    for (int n = 32; n > 0; n /= 2)
        if (t < n) s[t] = joined(s[t], s[t + n]);  // HAZARD race
    if (t == 0) *out = joined(s[0], Particle{1, 1, 1, 1, 1});
}
CASE(tree_of_particles, 1, 64, zeros<Particle>(1))
