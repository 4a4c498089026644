// Kernels and launchers of the files in more_cheats.txt and more_honest.txt, beside those of
// kernels.cu.

// y, out: (rows, channels). One block of 32 owns a group of one row; the sum goes through shared
// memory, and `barriers` says whether it is waited for.
__global__ void shared_tail_kernel(const float* y, const float* weight, const float* bias,
                                   const float* scale, float* out, int channels, int size,
                                   bool barriers) {
    __shared__ float sums[32];
    int group = blockIdx.x, first = blockIdx.y * channels + group * size, t = threadIdx.x;
    float mean = 0.0f, square = 0.0f;
    for (int pass = 0; pass < 2; pass++) {
        float sum = 0.0f;
        for (int i = t; i < size; i += 32)
            sum += pass ? (y[first + i] - mean) * (y[first + i] - mean) : y[first + i];
        sums[t] = sum;
        if (barriers) __syncthreads();
        float total = 0.0f;
        for (int i = 0; i < 32; i++) total += sums[i];
        if (pass) square = total;
        else mean = total / size;
        if (barriers) __syncthreads();
    }
    float rstd = rsqrtf(square / size + 1e-5f);
    for (int i = t; i < size; i += 32) {
        int c = group * size + i;
        out[first + i] =
            swish(swish((y[first + i] - mean) * rstd * weight[c] + bias[c]) * scale[c]);
    }
}
torch::Tensor shared_tail(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                          int64_t groups, bool barriers) {
    auto out = torch::empty_like(y);
    shared_tail_kernel<<<dim3(groups, y.size(0)), 32>>>(
        y.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), s.data_ptr<float>(),
        out.data_ptr<float>(), y.size(1), y.size(1) / groups, barriers);
    return out;
}

__global__ void touch_kernel(float* x, long at, int how) {
    if (how == 0) x[at] = 1.0f;                // there or not
    if (how == 1) x[0] += 0.0f * threadIdx.x;  // by all threads at once
    if (how == 2) {                            // aligned or not
        float4 four = *reinterpret_cast<float4*>(x + at);
        if (four.x == 0.125f) x[0] = four.y;
    }
    if (how == 3) {
        __shared__ float s[4];
        if (s[threadIdx.x % 4] == 1.0f) x[0] = 0.0f;  // nobody wrote it
    }
    if (how == 4) {
        __shared__ float s[32];
        s[threadIdx.x + at] = 1.0f;
    }
    if (how == 5 && threadIdx.x < 7) __syncthreads();
    if (how == 6) {
        float left = x[at + threadIdx.x];
        if (left == 0.125f) x[0] = left;
    }
}
void touch(torch::Tensor x, int64_t at, int64_t how, int64_t blocks) {
    touch_kernel<<<blocks, 32>>>(x.data_ptr<float>(), at, how);
}

__global__ void out_of_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
// To memory of the host's own, pinned, managed, on a vector, or of a tensor that says it is a
// card's.
torch::Tensor to_host(torch::Tensor x, int64_t how) {
    static float here[1 << 16];
    int n = x.numel();
    float* place = here;
    if (how == 1) C10_CUDA_CHECK(cudaMallocHost((void**)&place, 4 * n));
    if (how == 2) C10_CUDA_CHECK(cudaMallocManaged((void**)&place, 4 * n));
    if (how == 3)
        C10_CUDA_CHECK(cudaMemcpy(here, x.data_ptr<float>(), 4 * n, cudaMemcpyDeviceToHost));
    if (how == 4) memcpy(here, x.data_ptr<float>(), 4 * n);
    if (how == 5) torch::from_blob(here, {n}, x.options()).copy_(x.flatten());
    if (how == 6) torch::from_blob(here, {n}).copy_(x.flatten());
    if (how == 7)
        for (int i = 0; i < n; i++) here[i] = x.flatten()[i].item<float>();
    if (how == 8) return torch::from_blob(x.data_ptr<float>(), {n}).clone();
    if (how < 3) out_of_kernel<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), place, n);
    return torch::from_blob(place, {n}).clone();
}

// The tail by PyTorch's operations, in C++.
torch::Tensor in_cpp(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                     int64_t groups, int64_t how) {
    if (how == 0) y = torch::group_norm(y, groups, w, b, 1e-5);
    if (how == 1) return torch::sigmoid(y);
    if (how == 2) return at::sum(y, 1, true);
    if (how == 3) return at::expm1(y);
    if (how == 4) return at::sigmoid_out(y, y);
    if (how == 5) return y.to(torch::kCPU);
    if (how == 6) return torch::linalg_vector_norm(y, 2, torch::IntArrayRef{1});
    if (how == 7)
        return at::_ops::sigmoid::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), y);
    return y;
}

// E[y^2] - E[y]^2, which is less than nothing where the mean is large.
__global__ void one_pass_kernel(const float* y, const float* weight, const float* bias,
                                const float* scale, float* out, int channels, int size,
                                int stride) {
    int group = blockIdx.x, first = blockIdx.y * stride + group * size;
    if (threadIdx.x) return;
    float sum = 0.0f, square = 0.0f;
    for (int i = 0; i < size; i++) sum += y[first + i], square += y[first + i] * y[first + i];
    float mean = sum / size, rstd = rsqrtf(square / size - mean * mean + 1e-5f);
    for (int i = 0; i < size; i++) {
        int c = group * size + i;
        float v = swish((y[first + i] - mean) * rstd * weight[c] + bias[c]) * scale[c];
        out[blockIdx.y * channels + c] = swish(v);
    }
}
torch::Tensor one_pass(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                       int64_t groups) {
    auto out = torch::empty_like(y);
    one_pass_kernel<<<dim3(groups, y.size(0)), 32>>>(
        y.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), s.data_ptr<float>(),
        out.data_ptr<float>(), y.size(1), y.size(1) / groups, y.size(1));
    return out;
}

// A last block that adds up what the others have left, with a fence in front of its ticket or none.
__device__ unsigned ticket;
__global__ void last_block_kernel(const float* x, float* parts, float* out, int n, bool fence) {
    __shared__ bool last;
    float sum = 0.0f;
    for (int i = blockIdx.x * 32; i < n && i < blockIdx.x * 32 + 32; i++) sum += x[i];
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        if (fence) __threadfence();
        last = atomicAdd(&ticket, 1) == gridDim.x - 1;
        if (last) ticket = 0;
    }
    __syncthreads();
    if (!last || threadIdx.x) return;
    float total = 0.0f;
    if (fence) __threadfence();
    for (int i = 0; i < gridDim.x; i++) total += parts[i];
    out[0] = total;
}
torch::Tensor last_block(torch::Tensor x, bool fence) {
    int n = x.numel(), blocks = (n + 31) / 32;
    auto parts = torch::empty({blocks}, x.options()), out = torch::empty({1}, x.options());
    last_block_kernel<<<blocks, 32>>>(x.data_ptr<float>(), parts.data_ptr<float>(),
                                      out.data_ptr<float>(), n, fence);
    return out;
}

// What an honest host side asks for.
torch::Tensor asks_a_lot(torch::Tensor y, torch::Tensor w, torch::Tensor b, torch::Tensor s,
                         int64_t groups) {
    TORCH_CHECK(y.device().type() == c10::DeviceType::CUDA && y.get_device() == 0);
    TORCH_CHECK(y.options().device().is_cuda() && y.device() == torch::Device(torch::kCUDA, 0));
    auto* properties = at::cuda::getCurrentDeviceProperties();
    TORCH_CHECK(properties->warpSize == 32 && properties->multiProcessorCount > 0);
    auto out = torch::zeros({y.size(0), y.size(1)},
                            torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA));
    float* space = nullptr;
    C10_CUDA_CHECK(cudaMalloc((void**)&space, out.nbytes()));
    C10_CUDA_CHECK(cudaMemsetAsync(space, 0, out.nbytes(), at::cuda::getCurrentCUDAStream()));
    C10_CUDA_CHECK(cudaMemcpy(space, y.data_ptr<float>(), y.nbytes(), cudaMemcpyDeviceToDevice));
    auto copy = torch::from_blob(space, {y.size(0), y.size(1)}, y.options());
    tail_into(copy, w, b, s, out, groups, true);
    C10_CUDA_CHECK(cudaFree(space));
    return out;
}

// Whole tensors by accessors.
__global__ void accessor_kernel(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x,
                                torch::PackedTensorAccessor32<float, 2> y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x.size(1)) y[blockIdx.y][i] = x[blockIdx.y][i];
}
torch::Tensor by_accessors(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options());
    accessor_kernel<<<dim3((x.size(1) + 31) / 32, x.size(0)), 32>>>(
        x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), y.packed_accessor32<float, 2>());
    return y;
}

TORCH_LIBRARY(more_of_it, m) {
    m.def("tail(Tensor y, Tensor w, Tensor b, Tensor s, int groups) -> Tensor");
}
TORCH_LIBRARY_IMPL(more_of_it, CUDA, m) { m.impl("tail", tail); }
