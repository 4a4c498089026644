// A kernel's clock counts at the rate that the device reports.
#include "check.cuh"

__global__ void spend(clock_t cycles, long long* spent) {
    const long long before = clock64();
    const clock_t start = clock();
    while (clock() - start < cycles) {
    }
    spent[threadIdx.x] = clock64() - before;
}

int main() {
    int kilohertz = 0;
    CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
    long long* spent = to_device(std::vector<long long>(2));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    spend<<<1, 1>>>(2 * kilohertz, spent);  // 2 ms
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    const int wrong = (milliseconds < 1.5f) + (to_host(spent, 1)[0] < 2ll * kilohertz);
    return verdict("kernel_clocks", wrong);
}
