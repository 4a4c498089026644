// The calls of `host.cpp`, by the kernels of the two exercises.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups) {
    forwards::bias_hardtanh_mish_gn(y, weight, bias, parameter, out, rows, channels, groups);
}
void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* dout, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups) {
    backwards::bias_hardtanh_mish_gn_backward(y, weight, parameter, dout, dy, dweight, dbias,
                                              dparameter, rows, channels, groups);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
