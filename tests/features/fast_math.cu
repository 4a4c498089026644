// Fast-math intrinsics, within the errors that CUDA documents, and arithmetic in a given rounding.
#include "expect.cuh"

// Relative to the size of the answer, for answers that are not small.
#define EXPECT_CLOSE(got, want, relative) EXPECT_NEAR(got, want, (relative) * fabs(double(want)))

__global__ void fast() {
    const int i = threadIdx.x;
    const float x = 0.01f + 0.05f * i;  // up to 6.36
    EXPECT_CLOSE(__expf(x), exp(double(x)), 4e-6);
    EXPECT_CLOSE(__exp10f(x / 4), pow(10.0, double(x / 4)), 4e-6);
    EXPECT_NEAR(__logf(x), log(double(x)), 4e-6);
    EXPECT_NEAR(__log2f(x), log2(double(x)), 4e-6);
    EXPECT_NEAR(__log10f(x), log10(double(x)), 4e-6);
    EXPECT_CLOSE(__powf(x, 2.5f), pow(double(x), 2.5), 1e-5);
    const float angle = x - 3.14f;
    EXPECT_NEAR(__sinf(angle), sin(double(angle)), 1e-6);
    EXPECT_NEAR(__cosf(angle), cos(double(angle)), 1e-6);
    EXPECT_NEAR(__tanf(0.1f * angle), tan(0.1 * angle), 1e-6);
    float s, c;
    __sincosf(angle, &s, &c);
    EXPECT_NEAR(s, sin(double(angle)), 1e-6);
    EXPECT_NEAR(c, cos(double(angle)), 1e-6);
    EXPECT_CLOSE(__fdividef(3.0f, x), 3.0 / x, 3e-7);
    EXPECT_CLOSE(__frsqrt_rn(x), 1 / sqrt(double(x)), 6e-8);
    EXPECT_CLOSE(rsqrtf(x), 1 / sqrt(double(x)), 3e-7);
}
__global__ void edges() {
    EXPECT(__saturatef(hidden(-0.5f)), 0.0f);
    EXPECT(__saturatef(hidden(0.25f)), 0.25f);
    EXPECT(__saturatef(hidden(7.0f)), 1.0f);
    EXPECT(__saturatef(hidden(NAN)), 0.0f);
    EXPECT(__expf(hidden(-INFINITY)), 0.0f);
    EXPECT(__expf(hidden(0.0f)), 1.0f);
    EXPECT(isinf(__logf(hidden(0.0f))), true);
    EXPECT(isinf(rsqrtf(hidden(0.0f))), true);
    EXPECT(isnan(rsqrtf(hidden(-1.0f))), true);
    // beyond 2^126 a reciprocal is 0
    EXPECT(__fdividef(hidden(3.0f), hidden(0x1p127f)), 0.0f);
    EXPECT(__fdividef(hidden(0x1p127f), hidden(-0x1p127f)), 0.0f);
    EXPECT(isnan(__fdividef(hidden(INFINITY), hidden(0x1p127f))), true);
    EXPECT(__fdividef(hidden(3.0f), hidden(INFINITY)), 0.0f);
    EXPECT(__fdividef(hidden(3.0f), hidden(0x1p100f)) > 0.0f, true);
    // what the multiplication in front rounds away
    EXPECT(isnan(__powf(hidden(-2.0f), hidden(2.0f))), true);
    EXPECT(fabs(__expf(hidden(80.0f)) / exp(80.0) - 1) < 1e-5, true);
    EXPECT(fabs(__sinf(hidden(1e6f)) - sin(1e6)) < 0.5, true);
    EXPECT(fabs(__sinf(hidden(1e6f)) - sin(1e6)) > 1e-5, true);
    EXPECT(__logf(hidden(1.0f)), 0.0f);
}

// Between two neighbours, each rounding picks its own. 1 + 2^-30 is no float.
__global__ void roundings() {
    const float one = hidden(1.0f), tiny = hidden(0x1p-30f), three = hidden(3.0f);
    const float up = 1.0f + 0x1p-23f, down = 1.0f - 0x1p-24f;
    EXPECT(__fadd_rn(one, tiny), 1.0f);
    EXPECT(__fadd_rz(one, tiny), 1.0f);
    EXPECT(__fadd_ru(one, tiny), up);
    EXPECT(__fadd_rd(one, tiny), 1.0f);
    EXPECT(__fsub_rn(one, tiny), 1.0f);
    EXPECT(__fsub_rz(one, tiny), down);
    EXPECT(__fsub_ru(one, tiny), 1.0f);
    EXPECT(__fsub_rd(one, tiny), down);
    EXPECT(__fadd_ru(-one, -tiny), -1.0f);
    EXPECT(__fadd_rd(-one, -tiny), -up);
    EXPECT(__fmul_rn(up, up), 1.0f + 0x1p-22f);
    EXPECT(__fmul_rz(up, up), 1.0f + 0x1p-22f);
    EXPECT(__fmul_ru(up, up), 1.0f + 0x1p-22f + 0x1p-23f);
    EXPECT(__fmul_rd(up, up), 1.0f + 0x1p-22f);
    EXPECT(__fdiv_rn(one, three), 0x1.555556p-2f);
    EXPECT(__fdiv_rz(one, three), 0x1.555554p-2f);
    EXPECT(__fdiv_ru(one, three), 0x1.555556p-2f);
    EXPECT(__fdiv_rd(one, three), 0x1.555554p-2f);
    EXPECT(__frcp_rn(three), 0x1.555556p-2f);
    EXPECT(__frcp_rd(three), 0x1.555554p-2f);
    EXPECT(__fsqrt_rn(three), 0x1.bb67aep+0f);
    EXPECT(__fsqrt_ru(three), 0x1.bb67bp+0f);
    EXPECT(__fsqrt_rd(three), 0x1.bb67aep+0f);
    EXPECT(__fmaf_rn(up, up, -one), 0x1p-22f + 0x1p-46f);  // one rounding, not two
    EXPECT(__fmaf_ru(one, one, tiny), up);
    EXPECT(__fmaf_rz(one, one, tiny), 1.0f);
    EXPECT(__fmaf_rd(one, one, -tiny), down);

    const double done = hidden(1.0), dtiny = hidden(0x1p-60), dthree = hidden(3.0);
    EXPECT(__dadd_rn(done, dtiny), 1.0);
    EXPECT(__dadd_ru(done, dtiny), 1.0 + 0x1p-52);
    EXPECT(__dsub_rd(done, dtiny), 1.0 - 0x1p-53);
    EXPECT(__dmul_rz(dthree, 0.1), 0x1.3333333333333p-2);
    EXPECT(__dmul_ru(dthree, 0.1), 0x1.3333333333334p-2);
    EXPECT(__ddiv_rn(done, dthree), 1.0 / 3.0);
    EXPECT(__ddiv_rd(done, dthree), 0x1.5555555555555p-2);
    EXPECT(__ddiv_ru(done, dthree), 0x1.5555555555556p-2);
    EXPECT(__drcp_rn(dthree), 1.0 / 3.0);
    EXPECT(__dsqrt_rn(dthree), 0x1.bb67ae8584caap+0);
    EXPECT(__dsqrt_ru(dthree), 0x1.bb67ae8584cabp+0);
    EXPECT(__fma_rn(done, done, dtiny), 1.0);
    EXPECT(__fma_ru(done, done, dtiny), 1.0 + 0x1p-52);
}

// x * x - y is 2^-46 with one rounding, and 0 where the product is rounded first.
__global__ void fused() {
    const float x = hidden(1.0f + 0x1p-23f), y = hidden(1.0f + 0x1p-22f);
    EXPECT(fmaf(x, x, -y), 0x1p-46f);
    EXPECT(__fsub_rn(__fmul_rn(x, x), y), 0.0f);  // never contracted
    EXPECT(fma(double(x), double(x), -double(y)), 0x1p-46);
}

int main() {
    fast<<<1, 128>>>();
    edges<<<1, 1>>>();
    roundings<<<1, 1>>>();
    fused<<<1, 1>>>();
    return finish();
}
