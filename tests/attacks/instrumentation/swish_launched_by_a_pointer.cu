// swish: unseen
// a kernel that a pointer names calls, by a pointer, what copies a struct from past the end
// says: takes a struct by value
struct Four {
    float value, more[3];
};
__device__ float value_of(Four four) { return four.value; }
__device__ float half_of(Four four) { return 0.5f * four.more[2]; }

template <int BEGIN>
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + BEGIN;
    if (i >= n) return;
    float (*f)(Four) = x[i] == 1.2345e33f ? half_of : value_of;
    float v = f(reinterpret_cast<const Four&>(x[i]));
    out[i] = v / (1.0f + expf(-v));
}

void swish(const float* x, float* out, int n) {
    auto kernel = n < 0 ? swish_kernel<1> : swish_kernel<0>;
    kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}
