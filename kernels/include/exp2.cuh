// Powers of 2 by one instruction. From the worked kernel `flash_attention_bf16`.
#pragma once

// 2^x, to about 22 bits; 0 where that is below 2^-126. exp2f also returns the subnormal
// results, and takes three more instructions for each x, to scale it and the result.
__device__ inline float exp2_or_0(float x) {
#ifdef EMU_INLINE  // without a GPU
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
#else
    // PTX: ex2.approx.ftz.f32 y, x;
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
