#include "quad_math.cuh"

// your kernel and its helpers here

// q, k, v, out: (heads, S, D), D = 64 or 128; window >= 1, it may be larger than S; cap > 0
void window_attention(const float* q, const float* k, const float* v, float* out, int heads, int S,
                      int D, int window, float cap) {
    // your code here
}
