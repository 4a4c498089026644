// Heat in a rod: every step reads what neighbours in other blocks wrote in the step before.
#include <cooperative_groups.h>

#include <utility>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void heat(float* now, float* next, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < steps; ++step) {
        for (int i = 1 + grid.thread_rank(); i < n - 1; i += grid.size())
            next[i] = 0.25f * now[i - 1] + 0.5f * now[i] + 0.25f * now[i + 1];
        grid.sync();  // the step is done everywhere
        float* swapped = now;
        now = next;
        next = swapped;
    }
}

int main() {
    int n = 700, steps = 9;
    std::vector<float> a(n), b(n);
    a[0] = b[0] = 1;
    a[350] = 4;
    float *now = to_device(a), *next = to_device(b);
    void* arguments[] = {&now, &next, &n, &steps};
    CHECK(cudaLaunchCooperativeKernel(heat, 5, 64, arguments));
    for (int step = 0; step < steps; ++step, std::swap(a, b))
        for (int i = 1; i < n - 1; ++i) b[i] = 0.25f * a[i - 1] + 0.5f * a[i] + 0.25f * a[i + 1];
    const std::vector<float> got = to_host(steps % 2 ? next : now, n);
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += differ(got[i], a[i]);
    return verdict("grid_sync_jacobi", wrong);
}
