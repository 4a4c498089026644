// The calls of `host.cpp`, by the kernels of the two exercises.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups) {
    forwards::gn_leaky_relu_double(y, weight, bias, out, rows, channels, groups);
}
void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* dout, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups) {
    backwards::gn_leaky_relu_double_backward(y, weight, bias, dout, dy, dweight, dbias, rows,
                                             channels, groups);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
