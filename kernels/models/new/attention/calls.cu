// The calls of `host.cpp`.

void start_attention(const float* q, const float* k, const float* v, float* out, float* row_max,
                     float* row_sum, int heads, int S, int D, int causal) {
    forwards::flash_attention_forward(q, k, v, out, row_max, row_sum, heads, S, D, causal);
}
void start_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D,
                              int causal) {
    backwards::flash_attention_backward(q, k, v, out, row_max, row_sum, grad_out, dq, dk, dv, heads,
                                        S, D, causal);
}
void start_linear(const float* x, const float* W, const float* b, float* y, int M, int N, int K) {
    start(linear_bias_kernel<Beside>, Prepared<Beside>(x, W, M, N, K), Channels{b}, y);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
