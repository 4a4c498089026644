#include "column_sums.cuh"
#include "linear_backward.cuh"

// dy: (M, N), x: (M, K), W: (N, K), dx: (M, K), dW: (N, K), db: (N)
// y = x * W^T + b backwards: dx = dy * W, dW = dy^T * x, db = the sums of dy's columns. Since
// 11.5: a matrix is turned around while it is split, so that both products run along rows.
void linear_backward(const float* dy, const float* x, const float* W, float* dx, float* dW,
                     float* db, int M, int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
    linear_dW(dy, x, dW, M, N, K);
    add_columns(dy, db, M, N);
}
