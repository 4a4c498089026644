// The calls of `hopper.cpp`: the fused model, of which y = x * W^T + b is kept where it is asked
// for, and the linear layer backwards.

void start_whole(const float* x, const float* W, const float* b, const float* weight,
                 const float* bias, const float* parameter, float* y, float* out, int M, int N,
                 int K, int groups) {
    Channels of = {b, weight, bias, parameter};
    auto launch = [=](auto size) {
        if (y) {
            auto kernel = hopper::WHOLE_KERNEL<Training, size()>;
            start(kernel, Prepared<Training>(x, W, M, N, K, y), of, out);
        } else {
            auto kernel = hopper::WHOLE_KERNEL<Beside, size()>;
            start(kernel, Prepared<Beside>(x, W, M, N, K), of, out);
        }
    };
    int size = N / groups;
    if (size == 16) launch(std::integral_constant<int, 16>());
    if (size == 32) launch(std::integral_constant<int, 32>());
    if (size == 64) launch(std::integral_constant<int, 64>());
}
