
// --- The linear layer. Names of sizes: x (M, K), W (N, K), y = x * W^T + b (M, N).

void start_linear(const float* x, const float* W, const float* b, float* y, int M, int N, int K);
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K);
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K);
void start_column_sums(const float* x, float* out, int rows, int channels);

// x and W as kernels want them. Raises where they do not fit.
std::pair<Tensor, Tensor> factors(const Tensor& x, const Tensor& W) {
    check_kind(x, "x", x);
    check_kind(W, "the linear layer's weight", x);
    TORCH_CHECK(x.dim() == 2 && W.dim() == 2 && W.size(1) == x.size(1), "x has ", text(x.size(-1)),
                " features, and the linear layer's weight takes ", text(W.size(-1)));
    check_size(std::max({x.size(0) * W.size(0), x.numel(), W.numel()}));
    return {prepared(x), prepared(W)};
}

// y is written.
void linear(Tensor x, Tensor W, Tensor b, Tensor y) {
    auto [rows, weight] = factors(x, W);
    check_kind(b, "the linear layer's bias", x);
    TORCH_CHECK(b.numel() == W.size(0), "the linear layer's bias has ", text(b.numel()),
                " elements, not ", text(W.size(0)));
    if (!y.numel()) return;
    c10::cuda::CUDAGuard guard(x.device());
    Tensor bias = prepared(b);
    start_linear(in(rows), in(weight), in(bias), out(y), x.size(0), W.size(0), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Those of dx and dW that have elements are written, and db.
void linear_backward(Tensor dy, Tensor x, Tensor W, Tensor dx, Tensor dW, Tensor db) {
    auto [rows, weight] = factors(x, W);
    check_kind(dy, "the linear layer's gradient", x);
    int M = x.size(0), N = W.size(0), K = x.size(1);
    if (!dy.numel()) {
        dW.zero_(), db.zero_();
        return;
    }
    c10::cuda::CUDAGuard guard(x.device());
    Tensor gradient = prepared(dy);
    if (dx.numel()) start_dx(in(gradient), in(weight), out(dx), M, N, K);
    if (dW.numel()) start_dW(in(gradient), in(rows), out(dW), M, N, K);
    start_column_sums(in(gradient), out(db), M, N);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// --- Attention. q, k, v, out: (batch, heads, S, D), D 64 or 128; row_max, row_sum: (batch, heads,
// S)

void start_attention(const float* q, const float* k, const float* v, float* out, float* row_max,
                     float* row_sum, int heads, int S, int D, int causal);
void start_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D, int causal);

// The tensors as kernels want them. Raises where they are not alike.
std::vector<Tensor> alike(std::initializer_list<Tensor> tensors) {
    const Tensor& q = *tensors.begin();
    std::vector<Tensor> all;
    for (const Tensor& tensor : tensors) {
        check_kind(tensor, "one of q, k and v", q);
        TORCH_CHECK(tensor.sizes() == q.sizes(), "q, k and v have unlike shapes");
        all.push_back(prepared(tensor));
    }
    TORCH_CHECK(q.dim() == 4 && (q.size(3) == 64 || q.size(3) == 128),
                "q must be (batch, heads, S, D), and D 64 or 128");
    check_size(q.numel());
    return all;
}

// out, row_max and row_sum are written.
void attend(Tensor q, Tensor k, Tensor v, Tensor result, Tensor row_max, Tensor row_sum,
            bool causal) {
    auto all = alike({q, k, v});
    if (!result.numel()) return;
    c10::cuda::CUDAGuard guard(q.device());
    start_attention(in(all[0]), in(all[1]), in(all[2]), out(result), out(row_max), out(row_sum),
                    q.size(0) * q.size(1), q.size(2), q.size(3), causal);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// dq, dk and dv are written.
void attend_backward(Tensor q, Tensor k, Tensor v, Tensor result, Tensor row_max, Tensor row_sum,
                     Tensor grad_out, Tensor dq, Tensor dk, Tensor dv, bool causal) {
    auto all = alike({q, k, v, result, grad_out});
    if (!q.numel()) return;
    c10::cuda::CUDAGuard guard(q.device());
    Tensor top = prepared(row_max), sum = prepared(row_sum);
    start_attention_backward(in(all[0]), in(all[1]), in(all[2]), in(all[3]), in(top), in(sum),
                             in(all[4]), out(dq), out(dk), out(dv), q.size(0) * q.size(1),
                             q.size(2), q.size(3), causal);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
