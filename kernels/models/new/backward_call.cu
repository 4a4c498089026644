void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* grad_out, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups) {
    backwards::BACKWARD(BACKWARD_READS, grad_out, BACKWARD_WRITES, rows, channels, groups);
}
