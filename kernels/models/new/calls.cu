// The calls of `host.cpp`, by the kernels of the two exercises.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups) {
    forwards::TAIL(TAIL_READS, out, rows, channels, groups);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
