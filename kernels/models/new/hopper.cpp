// --- The same on Hopper's tensor cores
#include <c10/core/impl/LocalDispatchKeySet.h>

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

// Whether PyTorch would take an operation on these to the card at once, x being the first: nobody
// casts, traces, transforms or watches it, and none of them is a tensor of another kind.
bool unobserved(const std::vector<Maybe>& tensors) {
    auto local = c10::impl::tls_local_dispatch_key_set();
    c10::DispatchKeySet keys = local.included_;
    for (const Maybe& tensor : tensors) {
        if (tensor) keys = keys | tensor->key_set();
    }
    keys = keys - local.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView -
           c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
    auto first = c10::toFunctionalityKey(keys.highestPriorityTypeId());
    return tensors[0]->is_cuda() && first == c10::DispatchKey::Dense;
}

// The result of a forward of which nothing is kept; none where it must be seen.
Maybe infer(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias, Maybe parameter,
            int64_t groups) {
    if (!unobserved({x, W, b, weight, bias, parameter})) return {};
    std::vector<Tensor> all = arguments(x, W, b, weight, bias, parameter, groups);
    int64_t M = x.size(0), N = W.size(0);
    Tensor result = at::empty(RESULT_SHAPE, x.options());
    if (!result.numel()) return result;
    if (parameter) parameter = all[5];
    whole(all[0], all[1], all[2], all[3], all[4], parameter, Tensor(), result, groups);
    return result;
}

// The linear layer backwards: those of dx and dW that have elements are written.
void products(Tensor dy, Tensor x, Tensor W, Tensor dx, Tensor dW) {
    c10::cuda::CUDAGuard guard(x.device());
    int M = x.size(0), N = W.size(0), K = x.size(1);
    if (dx.numel()) start_dx(in(dy), in(W), out(dx), M, N, K);
    if (dW.numel()) start_dW(in(dy), in(x), out(dW), M, N, K);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
