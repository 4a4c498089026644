// The vector types: sizes, alignments, make_*, wide loads and stores.
#include "expect.cuh"

// As in the CUDA programming guide's table of vector types.
template <class T>
__host__ __device__ void shape(size_t size, size_t alignment) {
    EXPECT(sizeof(T), size);
    EXPECT(alignof(T), alignment);
}
__host__ __device__ void shapes() {
    shape<char1>(1, 1), shape<char2>(2, 2), shape<char3>(3, 1), shape<char4>(4, 4);
    shape<uchar1>(1, 1), shape<uchar2>(2, 2), shape<uchar3>(3, 1), shape<uchar4>(4, 4);
    shape<short1>(2, 2), shape<short2>(4, 4), shape<short3>(6, 2), shape<short4>(8, 8);
    shape<ushort1>(2, 2), shape<ushort2>(4, 4), shape<ushort3>(6, 2), shape<ushort4>(8, 8);
    shape<int1>(4, 4), shape<int2>(8, 8), shape<int3>(12, 4), shape<int4>(16, 16);
    shape<uint1>(4, 4), shape<uint2>(8, 8), shape<uint3>(12, 4), shape<uint4>(16, 16);
    shape<float1>(4, 4), shape<float2>(8, 8), shape<float3>(12, 4), shape<float4>(16, 16);
    shape<long1>(8, 8), shape<long2>(16, 16), shape<long3>(24, 8);
    shape<ulong1>(8, 8), shape<ulong2>(16, 16), shape<ulong3>(24, 8);
    shape<longlong1>(8, 8), shape<longlong2>(16, 16), shape<longlong3>(24, 8);
    shape<ulonglong1>(8, 8), shape<ulonglong2>(16, 16), shape<ulonglong3>(24, 8);
    shape<double1>(8, 8), shape<double2>(16, 16), shape<double3>(24, 8);
    shape<dim3>(12, 4);
}
__global__ void shapes_on_device() { shapes(); }

__global__ void members() {
    const int i = hidden(3);
    EXPECT(make_int2(i, 4).x, 3);
    EXPECT(make_int2(i, 4).y, 4);
    EXPECT(make_int3(1, 2, i).z, 3);
    EXPECT(make_int4(1, 2, 3, 4 * i).w, 12);
    EXPECT(make_uint4(0, ~0u - i, 0, 0).y, ~0u - 3);
    EXPECT(make_float1(2.5f * i).x, 7.5f);
    EXPECT(make_float3(0, 0, 0.5f * i).z, 1.5f);
    EXPECT(make_double2(1e300, i).x, 1e300);
    EXPECT(make_char4(-1, -2, -3, i).y, -2);
    EXPECT(make_uchar4(255, 254, 253, i).x, 255);
    EXPECT(make_short2(-30000, i).x, -30000);
    EXPECT(make_ushort2(65535, i).x, 65535);
    EXPECT(make_longlong2(-(1ll << 60), i).x, -(1ll << 60));
    EXPECT(make_ulonglong2(~0ull, i).x, ~0ull);
    float4 v = {1, 2, 3, 4};
    v.z += i;
    float4 copy = v;
    copy.x = 9;
    EXPECT(v.x + v.y + v.z + v.w, 13.0f);
    EXPECT(copy.x + copy.z, 15.0f);
    float4 zero = {};
    EXPECT(zero.x + zero.w, 0.0f);
    const float* as_array = &v.x;  // the members lie one after the other
    EXPECT(as_array[3], 4.0f);
}

__device__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__global__ void add_four(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    reinterpret_cast<float4*>(c)[i] =
        reinterpret_cast<const float4*>(a)[i] + reinterpret_cast<const float4*>(b)[i];
}
__global__ void swap_pairs(int2* pairs, double2* doubles) {
    int2 pair = pairs[threadIdx.x];
    pairs[threadIdx.x] = make_int2(pair.y, pair.x);
    double2 both = doubles[threadIdx.x];
    doubles[threadIdx.x] = {both.y, both.x};
}
__global__ void grey(const uchar4* pixels, unsigned char* out) {
    uchar4 p = pixels[threadIdx.x];
    out[threadIdx.x] = (unsigned char)((p.x * 77 + p.y * 150 + p.z * 29) >> 8);
}
__global__ void rotate_shared(float4* values) {
    __shared__ float4 tile[64];
    tile[threadIdx.x] = values[threadIdx.x];
    __syncthreads();  // the tile is whole
    float4 next = tile[(threadIdx.x + 1) % 64];
    const float* words = reinterpret_cast<const float*>(tile);
    EXPECT(words[4 * ((threadIdx.x + 1) % 64) + 2], next.z);
    values[threadIdx.x] = next;
}

// Loads and stores with a cache hint move the same bytes.
__global__ void hints(const float4* in, float4* out, const int* ints, int* ints_out) {
    int i = threadIdx.x;
    float4 sum = __ldg(&in[i]);
    sum = sum + __ldcg(in + i) + __ldca(in + i) + __ldcs(in + i);
    __stcs(&out[i], sum);
    int whole = __ldg(ints + i) + __ldlu(ints + i) + __ldcv(ints + i);
    __stwb(ints_out + 3 * i, whole);
    __stcg(ints_out + 3 * i + 1, whole + 1);
    __stwt(ints_out + 3 * i + 2, whole + 2);
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(ints);
    EXPECT(__ldg(bytes + 4 * i), i);
    const double* pairs = reinterpret_cast<const double*>(in);
    EXPECT(__ldg(pairs), pairs[0]);
    EXPECT(__ldg(reinterpret_cast<const int2*>(ints) + i / 2).y, i / 2 * 2 + 1);
}

int main() {
    shapes();
    shapes_on_device<<<1, 1>>>();
    members<<<1, 1>>>();

    const int n = 1024;
    Buffer<float> a(n), b(n), c(n);
    for (int i = 0; i < n; ++i) a[i] = i, b[i] = 0.5f * i;
    a.upload(), b.upload();
    add_four<<<3, 96>>>(a.device, b.device, c.device, n);
    c.download();
    for (int i = 0; i < n; ++i) EXPECT(c[i], 1.5f * i);

    Buffer<int2> pairs(32);
    Buffer<double2> doubles(32);
    for (int i = 0; i < 32; ++i) pairs[i] = {i, -i}, doubles[i] = {0.5 * i, 3.0};
    pairs.upload(), doubles.upload();
    swap_pairs<<<1, 32>>>(pairs.device, doubles.device);
    pairs.download(), doubles.download();
    for (int i = 0; i < 32; ++i) {
        EXPECT(pairs[i].x == -i && pairs[i].y == i, true);
        EXPECT(doubles[i].x == 3.0 && doubles[i].y == 0.5 * i, true);
    }

    Buffer<uchar4> pixels(64);
    Buffer<unsigned char> out(64);
    for (int i = 0; i < 64; ++i)
        pixels[i] = make_uchar4((unsigned char)(4 * i), (unsigned char)(255 - i), 200, 0);
    pixels.upload();
    grey<<<1, 64>>>(pixels.device, out.device);
    out.download();
    for (int i = 0; i < 64; ++i) EXPECT(out[i], (4 * i * 77 + (255 - i) * 150 + 200 * 29) >> 8);

    Buffer<float4> fours(64), sums(64);
    for (int i = 0; i < 64; ++i) fours[i] = make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f);
    fours.upload();
    rotate_shared<<<1, 64>>>(fours.device);
    fours.download();
    for (int i = 0; i < 64; ++i) EXPECT(fours[i].w, (i + 1) % 64 + 0.75f);

    Buffer<int> ints(64), ints_out(3 * 64);
    for (int i = 0; i < 64; ++i) ints[i] = i;
    ints.upload();
    hints<<<1, 64>>>(fours.device, sums.device, ints.device, ints_out.device);
    sums.download(), ints_out.download();
    for (int i = 0; i < 64; ++i) EXPECT(sums[i].z, 4 * fours[i].z);
    for (int i = 0; i < 3 * 64; ++i) EXPECT(ints_out[i], i / 3 * 3 + i % 3);
    return finish();
}
