// What half and bfloat16 have in common. A Format names the types, their bits and where they end.
#pragma once

#include "expect.cuh"

template <class F>
__host__ __device__ unsigned bits(typename F::T a) {
    return F::to_bits(a);
}

// The answers are exact in float, or were rounded once by hand.
template <class F>
__device__ void arithmetic() {
    using T = typename F::T;
    const T three = hidden(3.0f), five = hidden(5.0f), tiny = F::from_bits(hidden(1u));
    const T one = hidden(1.0f), unit = F::from_bits(bits<F>(one) + 1), nan = hidden(NAN);
    EXPECT(float(__hadd(three, five)), 8.0f);
    EXPECT(float(__hsub(three, five)), -2.0f);
    EXPECT(float(__hmul(three, five)), 15.0f);
    EXPECT(float(__hdiv(five, T(2.0f))), 2.5f);
    EXPECT(bits<F>(__hdiv(one, three)), F::third);
    EXPECT(float(__hadd_rn(three, five)) + float(__hsub_rn(three, five)), 6.0f);
    EXPECT(float(__hmul_rn(three, five)), 15.0f);
    EXPECT(float(__hneg(three)), -3.0f);
    EXPECT(float(__habs(__hneg(three))), 3.0f);
    EXPECT(bits<F>(__hneg(T(0.0f))), 0x8000u);
    // Below the least normal number, ties and what is under half of the least.
    EXPECT(bits<F>(__hadd(tiny, tiny)), 2u);
    EXPECT(bits<F>(__hmul(tiny, T(0.5f))), 0u);
    EXPECT(bits<F>(__hmul(tiny, T(1.5f))), 2u);
    EXPECT(bits<F>(__hmul(tiny, T(2.5f))), 2u);
    // 1 + (the last place) times itself is 1 + 2 places and a little.
    EXPECT(bits<F>(__hmul(unit, unit)), bits<F>(one) + 2);
    EXPECT(bits<F>(__hadd(F::from_bits(F::infinity - 1u), F::from_bits(F::infinity - 1u))),
           F::infinity);

    EXPECT(float(__hadd_sat(three, five)), 1.0f);
    EXPECT(float(__hsub_sat(three, five)), 0.0f);
    EXPECT(float(__hmul_sat(T(0.5f), T(0.5f))), 0.25f);

    EXPECT(float(__hmax(three, five)) - float(__hmin(three, five)), 2.0f);
    EXPECT(float(__hmax(three, nan)) + float(__hmin(nan, five)), 8.0f);
    EXPECT(__hisnan(__hmax_nan(three, nan)) && __hisnan(__hmin_nan(nan, three)), true);
    EXPECT(bits<F>(__hmax(T(-0.0f), T(0.0f))), 0u);
    EXPECT(bits<F>(__hmax(T(0.0f), T(-0.0f))), 0u);
    EXPECT(bits<F>(__hmin(T(0.0f), T(-0.0f))), 0x8000u);
}

// Multiply and add in one. nvcc has it for bfloat16 from sm_80 on.
template <class F>
__device__ void fused() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    using T = typename F::T;
    using T2 = typename F::T2;
    const T one = hidden(1.0f), three = hidden(3.0f), five = hidden(5.0f), nan = hidden(NAN);
    const T tiny = F::from_bits(hidden(1u));
    EXPECT(float(__hfma(three, five, one)), 16.0f);
    // The product is a tie: whatever is added, however little, decides. One rounding, not two.
    const T a = F::tie_a(), b = F::tie_b();
    EXPECT(float(__hfma(a, b, T(0.0f))), F::tie_even);
    EXPECT(float(__hfma(a, b, tiny)), F::tie_above);
    EXPECT(float(__hfma(a, b, __hneg(tiny))), F::tie_below);
    EXPECT(float(__hfma_sat(nan, one, one)), 0.0f);
    EXPECT(float(__hfma_relu(three, five, T(-16.0f))), 0.0f);
    EXPECT(float(__hfma_relu(three, five, T(-14.0f))), 1.0f);
    const T2 both = __hfma2(T2(one, three), T2(five, five), T2(three, one));
    EXPECT(__low2float(both), 8.0f);
    EXPECT(__high2float(both), 16.0f);
    EXPECT(__high2float(__hfma2_sat(T2(one, three), T2(five, five), T2(three, one))), 1.0f);
#endif
}

template <class F>
__host__ __device__ void comparisons() {
    using T = typename F::T;
    const T one = hidden(1.0f), two = hidden(2.0f), nan = hidden(NAN), zero = hidden(0.0f);
    EXPECT(__heq(one, one) && !__heq(one, two) && !__heq(nan, nan), true);
    EXPECT(__hne(one, two) && !__hne(one, one) && !__hne(nan, one), true);
    EXPECT(__hlt(one, two) && !__hlt(two, one) && !__hlt(one, one) && !__hlt(nan, one), true);
    EXPECT(__hle(one, two) && !__hle(two, one) && __hle(one, one) && !__hle(nan, one), true);
    EXPECT(__hgt(two, one) && !__hgt(one, two) && !__hgt(one, one) && !__hgt(nan, one), true);
    EXPECT(__hge(two, one) && !__hge(one, two) && __hge(one, one) && !__hge(nan, one), true);
    EXPECT(__hequ(nan, one) && __hneu(nan, one) && __hltu(nan, one) && __hleu(one, nan), true);
    EXPECT(__hgtu(nan, one) && __hgeu(one, nan), true);
    EXPECT(__hequ(one, two) || __hneu(one, one) || __hltu(two, one) || __hleu(two, one), false);
    EXPECT(__hgtu(one, two) || __hgeu(one, two), false);
    EXPECT(__heq(zero, __hneg(zero)), true);
    EXPECT(__hisnan(nan) && !__hisnan(one), true);
    EXPECT(__hisinf(T(INFINITY)) == 1 && __hisinf(T(-INFINITY)) == -1 && !__hisinf(nan), true);
    EXPECT(one == one && one != two && one < two && one <= two && two > one && two >= two, true);
    EXPECT(nan == nan || nan < one || nan >= one, false);
    EXPECT(nan != nan, true);
}

// Operators, and what is converted without being asked.
template <class F>
__host__ __device__ void operators() {
    using T = typename F::T;
    using T2 = typename F::T2;
    T a = 3.0f, b = 2, c = 0.5;
    EXPECT(float(a + b * c - a / b), 2.5f);
    EXPECT(float(-a), -3.0f);
    a += b, a -= c, a *= b, a /= c;
    EXPECT(float(a), 18.0f);
    EXPECT(float(a++), 18.0f);
    EXPECT(float(--a), 18.0f);
    const float wide = b;
    const int whole = T(-2.75f);
    EXPECT(wide + whole, 0.0f);
    EXPECT(static_cast<double>(c), 0.5);
    EXPECT(static_cast<unsigned char>(T(300.0f)), 255);
    EXPECT(static_cast<short>(T(-40000.0f)), -32768);
    EXPECT(b ? 1 : 2, 1);
    EXPECT(T(0.0f) ? 1 : 2, 2);
    T2 p(a, b), q = {c, T(4.0f)};
    p = p * q + q;
    p += q, p -= T2(b, b), p /= q, ++p;
    EXPECT(float(p.x), 17.0f);
    EXPECT(float(p.y), 4.5f);
    EXPECT(p == p && p != q && -p < p && p > -p && p >= p && p <= p, true);
    EXPECT(p == T2(p.x, q.y), false);
}

template <class F>
__device__ void pairs() {
    using T = typename F::T;
    using T2 = typename F::T2;
    EXPECT(sizeof(T) == 2 && alignof(T) == 2 && sizeof(T2) == 4 && alignof(T2) == 4, true);
    const T one = hidden(1.0f), two = hidden(2.0f), three = hidden(3.0f), nan = hidden(NAN);
    const T2 a(one, two), b(three, two);
    const float2 sums[] = {F::widen(__hadd2(a, b)), F::widen(__hsub2(a, b)),
                           F::widen(__hmul2(a, b)), F::widen(__h2div(b, a))};
    const float want[] = {4, 4, -2, 0, 3, 4, 3, 1};
    for (int i = 0; i < 4; ++i) {
        EXPECT(sums[i].x, want[2 * i]);
        EXPECT(sums[i].y, want[2 * i + 1]);
    }
    EXPECT(__low2float(__hmax2(a, b)) + __high2float(__hmin2(a, b)), 5.0f);
    EXPECT(__low2float(__hneg2(a)) + __high2float(__habs2(__hneg2(a))), 1.0f);
    EXPECT(__low2float(__heq2(a, b)), 0.0f);
    EXPECT(__high2float(__heq2(a, b)), 1.0f);
    EXPECT(__hbeq2(a, b) || __hblt2(a, b) || __hbne2(a, b), false);
    EXPECT(__hble2(a, b) && __hbge2(b, a) && __hbequ2(T2(nan, two), b), true);
    EXPECT(__heq2_mask(a, b), 0xffff0000u);
    EXPECT(__hlt2_mask(a, b), 0xffffu);
    EXPECT(__low2float(__hisnan2(T2(nan, one))), 1.0f);
    EXPECT(__low2float(__lowhigh2highlow(a)), 2.0f);
    unsigned word;
    memcpy(&word, &a, sizeof word);
    EXPECT(word, bits<F>(one) | bits<F>(two) << 16);
}

// Every value goes to float and back; half way to its neighbour, the even one of the two wins.
template <class F>
__global__ void every_value() {
    const unsigned word = blockIdx.x * blockDim.x + threadIdx.x, magnitude = word & 0x7fff;
    const auto value = F::from_bits(word);
    const float x = value;
    if (magnitude > F::infinity) {
        EXPECT(x != x, true);
        return;
    }
    EXPECT(bits<F>(typename F::T(x)), word);
    EXPECT(bits<F>(typename F::T(double(x))), word);
    if (magnitude >= F::infinity - 1u) return;
    const float next = F::from_bits(word + 1);
    const float middle = 0.5f * x + 0.5f * next;  // exact: a float has bits to spare
    EXPECT(bits<F>(typename F::T(middle)), word + word % 2);
    EXPECT(bits<F>(typename F::T(nextafterf(middle, x))), word);
    EXPECT(bits<F>(typename F::T(nextafterf(middle, next))), word + 1);
    EXPECT(bits<F>(F::towards_zero(middle)), word);
    EXPECT(bits<F>(F::up(middle)), word + (word < 0x8000));
    EXPECT(bits<F>(F::down(middle)), word + (word >= 0x8000));
}

template <class F>
__device__ void mathematics() {
    using T = typename F::T;
    const T one = hidden(1.0f), three = hidden(3.0f), five = hidden(5.0f);
    EXPECT(float(hsqrt(T(9.0f))), 3.0f);
    EXPECT(float(hrsqrt(T(4.0f))), 0.5f);
    EXPECT(float(hrcp(T(8.0f))), 0.125f);
    EXPECT(float(hexp(T(0.0f))), 1.0f);
    EXPECT(float(hexp2(three)), 8.0f);
    EXPECT(float(hlog2(T(8.0f))), 3.0f);
    EXPECT_NEAR(hexp10(T(2.0f)), 100.0, 0.5);
    const double close = 1.5 * F::last_place;  // relative: one rounding, and a little
    EXPECT_NEAR(hexp(three), exp(3.0), 20 * close);
    EXPECT_NEAR(hlog(five), log(5.0), 1.6 * close);
    EXPECT_NEAR(hlog10(five), log10(5.0), close);
    EXPECT_NEAR(hsin(one), sin(1.0), close);
    EXPECT_NEAR(hcos(one), cos(1.0), close);
    EXPECT_NEAR(htanh(T(0.5f)), tanh(0.5), close);
    EXPECT(float(hfloor(T(-1.5f))), -2.0f);
    EXPECT(float(hceil(T(-1.5f))), -1.0f);
    EXPECT(float(htrunc(T(-1.5f))), -1.0f);
    EXPECT(float(hrint(T(2.5f))) + float(hrint(T(3.5f))), 6.0f);
    EXPECT(__low2float(h2sqrt(typename F::T2(T(16.0f), T(25.0f)))), 4.0f);
    EXPECT(__high2float(h2rcp(typename F::T2(three, T(4.0f)))), 0.25f);
}

template <class F>
__global__ void everything() {
    arithmetic<F>();
    fused<F>();
    comparisons<F>();
    operators<F>();
    pairs<F>();
    mathematics<F>();
}

// What threads do together: wide loads, shared memory, shuffles, atomics.
template <class F>
__global__ void together(const typename F::T2* in, typename F::T2* out, typename F::T* sum,
                         typename F::T2* sums) {
    using T = typename F::T;
    using T2 = typename F::T2;
    __shared__ T2 tile[64];
    __shared__ T row[64];
    const int i = threadIdx.x;
    tile[i] = __ldg(&in[i]);
    row[i] = T(float(i));
    __syncthreads();  // the tile and the row are whole
    T2 v = tile[63 - i];
    EXPECT(__low2float(v), 2.0f * (63 - i));
    EXPECT(float(row[i ^ 1]), float(i ^ 1));
    v = __hadd2(v, __shfl_xor_sync(~0u, v, 1));
    EXPECT(float(__shfl_sync(~0u, row[i], 5)), float(i / 32 * 32 + 5));
    T below = __shfl_up_sync(~0u, row[i], 1), above = __shfl_down_sync(~0u, row[i], 1);
    EXPECT(float(below), i % 32 ? i - 1.0f : float(i));
    EXPECT(float(above), i % 32 < 31 ? i + 1.0f : float(i));
    out[i] = v;
    atomicAdd(sum, T(1.0f));
    atomicAdd(sums, T2(T(1.0f), T(-2.0f)));
}

template <class F>
int run() {
    using T = typename F::T;
    using T2 = typename F::T2;
    comparisons<F>(), operators<F>();
    everything<F><<<1, 1>>>();
    every_value<F><<<256, 256>>>();
    Buffer<T2> in(64), out(64), sums(1);
    Buffer<T> sum(1);
    for (int i = 0; i < 64; ++i) in[i] = T2(T(2.0f * i), T(2.0f * i + 1));
    sum[0] = T(0.0f), sums[0] = T2(T(0.0f), T(0.0f));
    in.upload(), sum.upload(), sums.upload();
    together<F><<<1, 64>>>(in.device, out.device, sum.device, sums.device);
    out.download(), sum.download(), sums.download();
    for (int i = 0; i < 64; ++i) {
        const int j = 63 - i;
        EXPECT(__low2float(out[i]), 2.0f * (j + (j ^ 1)));
        EXPECT(__high2float(out[i]), 2.0f * (j + (j ^ 1)) + 2);
    }
    EXPECT(float(sum[0]), 64.0f);
    EXPECT(__low2float(sums[0]), 64.0f);
    EXPECT(__high2float(sums[0]), -128.0f);
    return finish();
}
