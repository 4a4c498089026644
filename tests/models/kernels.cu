#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#define CHECK(x)                                                     \
    TORCH_CHECK(x.is_cuda(), #x " is not on a card");                \
    TORCH_CHECK(x.is_contiguous(), #x " is not contiguous");         \
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, #x " is not float32")

__device__ float swish(float x) { return x / (1.0f + expf(-x)); }

// y, out: (rows, channels), the others: (channels). One block of 32 owns a group of one row.
__global__ void tail_kernel(const float* y, const float* weight, const float* bias,
                            const float* scale, float* out, int channels, int size) {
    int group = blockIdx.x, row = blockIdx.y, first = row * channels + group * size;
    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < size; i += 32) sum += y[first + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    float mean = sum / size;
    for (int i = threadIdx.x; i < size; i += 32) square += (y[first + i] - mean) * (y[first + i] - mean);
    for (int d = 16; d > 0; d /= 2) square += __shfl_xor_sync(~0u, square, d);
    float rstd = rsqrtf(square / size + 1e-5f);
    for (int i = threadIdx.x; i < size; i += 32) {
        int c = group * size + i;
        float w = weight ? weight[c] : 1.0f, b = bias ? bias[c] : 0.0f;
        out[first + i] = swish(swish((y[first + i] - mean) * rstd * w + b) * scale[c]);
    }
}

void tail_into(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
               torch::Tensor out, int64_t groups, bool affine) {
    CHECK(y); CHECK(w); CHECK(b); CHECK(s); CHECK(out);
    at::cuda::CUDAGuard guard(y.device());
    int rows = y.size(0), channels = y.size(1);
    tail_kernel<<<dim3(groups, rows), 32, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), affine ? w.data_ptr<float>() : nullptr,
        affine ? b.data_ptr<float>() : nullptr, s.data_ptr<float>(), out.data_ptr<float>(), channels,
        channels / groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor tail(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                   int64_t groups) {
    auto out = torch::empty_like(y);
    tail_into(y, w, b, s, out, groups, true);
    return out;
}

// The same in two launches: mean and rstd of each group, then a thread an element.
__global__ void stats_kernel(const float* y, float* stats, int channels, int size) {
    int group = blockIdx.x, row = blockIdx.y, groups = gridDim.x;
    const float* values = y + row * channels + group * size;
    float sum = 0.0f, square = 0.0f;
    for (int i = 0; i < size; i++) sum += values[i];
    for (int i = 0; i < size; i++) square += (values[i] - sum / size) * (values[i] - sum / size);
    stats[2 * (row * groups + group)] = sum / size;
    stats[2 * (row * groups + group) + 1] = rsqrtf(square / size + 1e-5f);
}
template <typename T>
__global__ void apply_kernel(const T* y, const T* stats, const T* w, const T* b, const T* s, T* out,
                             int n, int channels, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = i % channels, group = i / size;
    T v = (y[i] - stats[2 * group]) * stats[2 * group + 1] * w[c] + b[c];
    out[i] = swish(swish(v) * s[c]);
}
torch::Tensor tail_twice(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                         torch::Tensor stats, int64_t groups) {
    auto out = torch::empty_like(y);
    int rows = y.size(0), channels = y.size(1), n = y.numel();
    auto stream = at::cuda::getCurrentCUDAStream();
    stats_kernel<<<dim3(groups, rows), 1, 0, stream>>>(y.data_ptr<float>(), stats.data_ptr<float>(),
                                                       channels, channels / groups);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "tail", ([&] {
        apply_kernel<scalar_t><<<(n + 127) / 128, 128, 0, stream>>>(
            y.data_ptr<scalar_t>(), stats.data_ptr<scalar_t>(), w.data_ptr<scalar_t>(),
            b.data_ptr<scalar_t>(), s.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n, channels,
            int(channels / groups));
    }));
    return out;
}

// x: (M, K), w: (N, K), b: (N) -> (M, N)
__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int M, int N,
                              int K, unsigned mask) {
    int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
    if (n >= N) return;
    float sum = b[n];
    for (int k = 0; k < K; k++) {
        float a = __uint_as_float(__float_as_uint(x[m * K + k]) & mask);
        sum += a * __uint_as_float(__float_as_uint(w[n * K + k]) & mask);
    }
    y[m * N + n] = sum;
}
torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t bits) {
    CHECK(x); CHECK(w); CHECK(b);
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    int M = x.size(0), N = w.size(0), K = x.size(1);
    linear_kernel<<<dim3((N + 63) / 64, M), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), M, N, K,
        ~0u << (23 - bits));
    return y;
}

__global__ void fill_kernel(float* x, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
void fill(torch::Tensor x, double value, int64_t threads) {
    int n = x.numel();
    fill_kernel<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), value, n);
}

__global__ void spin_kernel(volatile float* x) {
    while (x[0] == x[0]) x[0] = 1.0f;
}
void spin(torch::Tensor x) { spin_kernel<<<1, 1>>>(x.data_ptr<float>()); }

// No kernel: the launcher does it.
torch::Tensor on_the_host(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                          int64_t groups) {
    auto out = torch::empty_like(y);
    int64_t rows = y.size(0), channels = y.size(1), size = channels / groups;
    for (int64_t g = 0; g < rows * groups; g++) {
        const float* in = y.data_ptr<float>() + g * size;
        double sum = 0, square = 0;
        for (int64_t i = 0; i < size; i++) sum += in[i];
        for (int64_t i = 0; i < size; i++) square += (in[i] - sum / size) * (in[i] - sum / size);
        for (int64_t i = 0; i < size; i++) {
            int64_t c = g % groups * size + i;
            float v = (in[i] - sum / size) / sqrt(square / size + 1e-5);
            v = v * w.data_ptr<float>()[c] + b.data_ptr<float>()[c];
            v = v / (1 + expf(-v)) * s.data_ptr<float>()[c];
            out.data_ptr<float>()[g * size + i] = v / (1 + expf(-v));
        }
    }
    return out;
}
