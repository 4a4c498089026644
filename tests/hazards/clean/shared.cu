// Shared memory used rightly: a barrier between any two accesses that meet.
#include "../case.cuh"

__global__ void reverse(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
CASE(reverse, 1, 64, zeros<float>(64))

__global__ void own_element_only(float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x] *= 2;
    out[threadIdx.x] = s[threadIdx.x];
}
CASE(own_element_only, 1, 64, zeros<float>(64))

__global__ void two_barriers_a_step(const float* in, float* out) {
    __shared__ float s[64];
    float sum = 0;
    for (int step = 0; step < 4; ++step) {
        s[threadIdx.x] = in[64 * step + threadIdx.x];
        __syncthreads();
        sum += s[63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
CASE(two_barriers_a_step, 1, 64, zeros<float>(256), zeros<float>(64))

__global__ void ping_pong(const float* in, float* out) {
    __shared__ float s[2][64];
    float sum = 0;
    for (int step = 0; step < 4; ++step) {  // one barrier a step: the other half is read meanwhile
        s[step % 2][threadIdx.x] = in[64 * step + threadIdx.x];
        __syncthreads();
        sum += s[step % 2][63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
CASE(ping_pong, 1, 64, zeros<float>(256), zeros<float>(64))

__global__ void tree(const float* in, float* out) {
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    for (int n = 128; n > 0; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) s[threadIdx.x] += s[threadIdx.x + n];
    }
    if (threadIdx.x == 0) *out = s[0];
}
CASE(tree, 1, 256, zeros<float>(256), zeros<float>(1))

__global__ void scan(int* data) {
    __shared__ int s[64];
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int left = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
        __syncthreads();
        s[threadIdx.x] += left;
        __syncthreads();
    }
    data[threadIdx.x] = s[threadIdx.x];
}
CASE(scan, 1, 64, zeros<int>(64))

__global__ void histogram(const int* in, int* out) {
    __shared__ int bins[8];
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] % 8], 1);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
CASE(histogram, 3, 96, zeros<int>(96), zeros<int>(8))

__global__ void char_each(char* out) {
    __shared__ char s[64];
    s[threadIdx.x] = threadIdx.x;  // four threads write one word, each its own byte
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
CASE(char_each, 1, 64, zeros<char>(64))

__global__ void short_each(short* out) {
    __shared__ short s[64];
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x] += 1;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
CASE(short_each, 1, 64, zeros<short>(64))

struct Mixed {
    char a;
    short b;
    char c;
};
__global__ void members_each(int* out) {
    __shared__ Mixed m[8];
    if (threadIdx.x < 8) m[threadIdx.x].a = 1;
    else if (threadIdx.x < 16) m[threadIdx.x - 8].b = 2;
    else if (threadIdx.x < 24) m[threadIdx.x - 16].c = 3;
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = m[threadIdx.x].a + m[threadIdx.x].b + m[threadIdx.x].c;
}
CASE(members_each, 1, 64, zeros<int>(8))

__global__ void many_readers(const float* in, float* out) {
    __shared__ float factor;
    if (threadIdx.x == 0) factor = in[0];
    __syncthreads();
    out[threadIdx.x] = factor * factor;
}
CASE(many_readers, 1, 96, zeros<float>(1), zeros<float>(96))

__global__ void tiled_product(const float* a, const float* b, float* c, int n) {
    __shared__ float as[8][8], bs[8][8];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += 8) {
        as[y][x] = row < n && k0 + x < n ? a[row * n + k0 + x] : 0;
        bs[y][x] = k0 + y < n && col < n ? b[(k0 + y) * n + col] : 0;
        __syncthreads();
        for (int k = 0; k < 8; ++k) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}
CASE(tiled_product, dim3(3, 3), dim3(8, 8), zeros<float>(400), zeros<float>(400), zeros<float>(400),
     20)

__global__ void padded_transpose(const float* in, float* out, int n) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
CASE(padded_transpose, dim3(2, 2), dim3(16, 16), zeros<float>(900), zeros<float>(900), 30)

__global__ void dynamic_in_two_parts(float* out, int n) {
    extern __shared__ float d[];
    float* second = d + n;
    d[threadIdx.x] = 1;
    second[threadIdx.x] = 2;
    __syncthreads();
    out[threadIdx.x] = d[n - 1 - threadIdx.x] + second[n - 1 - threadIdx.x];
}
CASE_DYNAMIC(dynamic_in_two_parts, 1, 64, 2 * 64 * sizeof(float), zeros<float>(64), 64)

template <class T, int N>
__global__ void in_template(T* out) {
    __shared__ T s[N];
    s[threadIdx.x] = T(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = s[N - 1 - threadIdx.x];
}
CASE_OF(in_templates) {
    in_template<double, 64><<<1, 64>>>(zeros<double>(64));
    in_template<char, 64><<<1, 64>>>(zeros<char>(64));
}

__global__ void producer_and_consumer(const float* in, float* out) {
    __shared__ float buffer[2][32];
    const bool producer = threadIdx.x < 32;
    const int lane = threadIdx.x % 32;
    for (int step = 0; step <= 4; ++step) {
        if (producer && step < 4) buffer[step % 2][lane] = in[32 * step + lane];
        if (!producer && step > 0) out[32 * (step - 1) + lane] = buffer[(step - 1) % 2][31 - lane];
        __syncthreads();
    }
}
CASE(producer_and_consumer, 1, 64, zeros<float>(128), zeros<float>(128))

__global__ void reused_as_another_type(const float* in, int* out) {
    __shared__ union {
        float f[64];
        int i[64];
    } u;
    u.f[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float other = u.f[63 - threadIdx.x];
    __syncthreads();
    u.i[threadIdx.x] = int(other);
    __syncthreads();
    out[threadIdx.x] = u.i[63 - threadIdx.x];
}
CASE(reused_as_another_type, 1, 64, zeros<float>(64), zeros<int>(64))

__global__ void arrays_in_scopes(int* out) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        __shared__ int s[64];
        s[threadIdx.x] = i;
        __syncthreads();
        sum += s[63 - threadIdx.x];
        __syncthreads();
    }
    {
        __shared__ int t[64];
        t[threadIdx.x] = sum;
        __syncthreads();
        out[threadIdx.x] = t[threadIdx.x ^ 1];
    }
}
CASE(arrays_in_scopes, 1, 64, zeros<int>(64))

__global__ void vector_loads(const float4* in, float* out) {
    __shared__ float4 s[16];
    if (threadIdx.x < 16) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = reinterpret_cast<float*>(s)[63 - threadIdx.x];
}
CASE(vector_loads, 1, 64, zeros<float4>(16), zeros<float>(64))

__global__ void halo(const float* in, float* out, int n) {
    __shared__ float s[66];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x + 1] = i < n ? in[i] : 0;
    if (threadIdx.x == 0) s[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == 63) s[65] = i + 1 < n ? in[i + 1] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];
}
CASE(halo, 2, 64, zeros<float>(100), zeros<float>(100), 100)

__global__ void sum_by_block_vote(const int* in, int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    int n = __syncthreads_count(in[threadIdx.x] > 0);
    out[threadIdx.x] = s[63 - threadIdx.x] + n;
}
CASE(sum_by_block_vote, 1, 64, zeros<int>(64), zeros<int>(64))

__global__ void captured_by_value(int* out) {
    __shared__ int s[64], total;
    if (threadIdx.x == 0) total = 0;
    auto put = [=](int i, int v) { s[i] = v; };  // shared variables are not copied
    put(threadIdx.x, 1);
    __syncthreads();
    auto sum = [=, &out] { return s[63 - threadIdx.x] + total; };
    out[threadIdx.x] = sum();
}
CASE(captured_by_value, 1, 64, zeros<int>(64))

__global__ void copied_by_the_library(float4* out, const float4* in, int n) {
    __shared__ float4 s[2][64];
    memset(&s[0][threadIdx.x], 0, 8);
    memset(&s[0][threadIdx.x].z, 0, 4 + 4);
    memcpy(&s[1][threadIdx.x], &in[threadIdx.x], n);
    __syncthreads();
    std::memcpy(&out[2 * threadIdx.x], s[threadIdx.x % 2] + threadIdx.x / 2 * 2, 2 * n);
}
CASE(copied_by_the_library, 1, 64, zeros<float4>(128), zeros<float4>(64), 16)

// Structs in a call: no access stands there but the call itself.
struct Pair {
    int key;
    float value;
};
__device__ __noinline__ Pair smaller(Pair a, Pair b) {
    bool less = a.value < b.value || (a.value == b.value && a.key < b.key);
    return less ? a : b;
}
__global__ void tree_of_pairs(Pair* out) {
    __shared__ Pair s[64];
    int t = threadIdx.x;
    s[t] = smaller({t, 1}, {t + 1, 2});
    __syncthreads();
    for (int n = 32; n > 0; n /= 2) {
        if (t < n) s[t] = smaller(s[t], s[t + n]);
        __syncthreads();
    }
    if (t == 0) *out = smaller(s[0], {64, 1});
}
CASE(tree_of_pairs, 1, 64, zeros<Pair>(1))
