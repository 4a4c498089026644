// The calls of `hopper.cpp`: the fused model, of which y = x * W^T + b is kept where it is asked
// for, and the linear layer backwards.

// keys: (M). The smallest of each row, as hopper::from_key() reads it, and no result: where a row
// lies on several cards, theirs must meet first.
void start_minima(const float* x, const float* W, const float* b, const float* weight,
                  const float* bias, float* y, unsigned* keys, int M, int N, int K, int groups) {
    cudaMemsetAsync(keys, 0xff, M * sizeof(unsigned));
    Channels of = {b, weight, bias};
    auto launch = [=](auto size) {
        if (y) {
            auto kernel = hopper::WHOLE_KERNEL<Training, size()>;
            start(kernel, Prepared<Training>(x, W, M, N, K, y), of, keys);
        } else {
            auto kernel = hopper::WHOLE_KERNEL<Beside, size()>;
            start(kernel, Prepared<Beside>(x, W, M, N, K), of, keys);
        }
    };
    int size = N / groups;
    if (size == 16) launch(std::integral_constant<int, 16>());
    if (size == 32) launch(std::integral_constant<int, 32>());
    if (size == 64) launch(std::integral_constant<int, 64>());
}
void start_whole(const float* x, const float* W, const float* b, const float* weight,
                 const float* bias, const float* parameter, float* y, float* out, int M, int N,
                 int K, int groups) {
    Scratch<unsigned> keys(M);
    start_minima(x, W, b, weight, bias, y, keys.data, M, N, K, groups);
    dim3 grid((M + 127) / 128, min(N, 256));
    hopper::spread_kernel<<<grid, 128>>>(keys.data, parameter, out, M, N);
}
