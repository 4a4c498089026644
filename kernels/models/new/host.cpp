
// --- The calls' own. Names of sizes: x (M, K), W (N, K), y = x * W^T + b (M, N).

// The tensors of N channels as kernels want them. Raises where they do not fit.
std::vector<Tensor> of_channels(Tensor weight, Tensor bias, Maybe parameter, const Tensor& x,
                                int64_t N, int64_t groups) {
    TORCH_CHECK(groups > 0 && N % groups == 0, text(N), " channels are not ", text(groups),
                " groups of one size");
    std::vector<Tensor> all;
    auto add = [&](const Tensor& tensor, const char* name) {
        check_kind(tensor, name, x);
        TORCH_CHECK(tensor.numel() == N, name, " has ", text(tensor.numel()), " elements, not ",
                    text(N));
        all.push_back(prepared(tensor));
    };
    add(weight, "GroupNorm's weight");
    add(bias, "GroupNorm's bias");
    if (parameter) add(*parameter, "the parameter");
    return all;
}

// The arguments of a forward as kernels want them. Raises where they do not fit.
std::vector<Tensor> arguments(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias,
                              Maybe parameter, int64_t groups) {
    check_kind(x, "x", x);
    TORCH_CHECK(x.dim() == 2, "x has ", text(x.dim()),
                " dimensions and must have 2: (batch, features)");
    check_kind(W, "the linear layer's weight", x);
    TORCH_CHECK(W.dim() == 2, "the linear layer's weight has ", text(W.dim()),
                " dimensions and must have 2: (channels, features)");
    TORCH_CHECK(W.size(1) == x.size(1), "x has ", text(x.size(1)),
                " features, and the linear layer's weight takes ", text(W.size(1)));
    int64_t N = W.size(0);
    check_size(std::max({x.size(0) * N, x.numel(), W.numel()}));
    check_kind(b, "the linear layer's bias", x);
    TORCH_CHECK(b.numel() == N, "the linear layer's bias has ", text(b.numel()), " elements, not ",
                text(N));
    std::vector<Tensor> all = {prepared(x), prepared(W), prepared(b)};
    for (Tensor& tensor : of_channels(weight, bias, parameter, x, N, groups)) all.push_back(tensor);
    return all;
}

// The same of what follows the linear layer, whose result is y.
std::vector<Tensor> tail_arguments(Tensor y, Tensor weight, Tensor bias, Maybe parameter,
                                   int64_t groups) {
    check_kind(y, "the linear layer's result", y);
    TORCH_CHECK(y.dim() == 2, "the linear layer's result has ", text(y.dim()),
                " dimensions and must have 2: (batch, channels)");
    check_size(y.numel());
    std::vector<Tensor> all = {prepared(y)};
    for (Tensor& tensor : of_channels(weight, bias, parameter, y, y.size(1), groups)) {
        all.push_back(tensor);
    }
    return all;
}

// --- Calls. Tensors are as arguments() gives them; there is at least one row.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups);
void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* grad_out, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups);
void start_column_sums(const float* x, float* out, int rows, int channels);

void tail(Tensor y, Tensor weight, Tensor bias, Maybe parameter, Tensor result, int64_t groups) {
    c10::cuda::CUDAGuard guard(y.device());
    start_tail(in(y), in(weight), in(bias), in(parameter), out(result), y.size(0), y.size(1),
               groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// dy, dweight, dbias and dparameter are written.
void tail_backward(Tensor y, Tensor weight, Tensor bias, Maybe parameter, Tensor grad_out,
                   Tensor dy, Tensor dweight, Tensor dbias, Maybe dparameter, int64_t groups) {
    c10::cuda::CUDAGuard guard(y.device());
    Tensor contiguous = prepared(grad_out);
    start_tail_backward(in(y), in(weight), in(bias), in(parameter), in(contiguous), out(dy),
                        out(dweight), out(dbias), out(dparameter), y.size(0), y.size(1), groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void column_sums(Tensor x, Tensor sums) {
    c10::cuda::CUDAGuard guard(x.device());
    start_column_sums(in(x), out(sums), x.size(0), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
