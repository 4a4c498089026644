void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
}
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K) {
    linear_dW(dy, x, dW, M, N, K);
}
