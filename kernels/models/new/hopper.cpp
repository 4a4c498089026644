// --- The same on Hopper's tensor cores

void start_whole(const float* x, const float* W, const float* b, const float* weight,
                 const float* bias, const float* parameter, float* y, float* out, int M, int N,
                 int K, int groups);
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K);
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K);

// The linear layer and all that follows. y is written where it has elements.
void whole(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias, Maybe parameter, Tensor y,
           Tensor result, int64_t groups) {
    c10::cuda::CUDAGuard guard(x.device());
    start_whole(in(x), in(W), in(b), in(weight), in(bias), in(parameter), out(y), out(result),
                x.size(0), W.size(0), x.size(1), groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// The linear layer backwards: those of dx and dW that have elements are written.
void products(Tensor dy, Tensor x, Tensor W, Tensor dx, Tensor dW) {
    c10::cuda::CUDAGuard guard(x.device());
    int M = x.size(0), N = W.size(0), K = x.size(1);
    if (dx.numel()) start_dx(in(dy), in(W), out(dx), M, N, K);
    if (dW.numel()) start_dW(in(dy), in(x), out(dW), M, N, K);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
