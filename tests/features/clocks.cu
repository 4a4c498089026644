// clock64 runs forward; fences and sleeps may stand anywhere.
#include "expect.cuh"

__global__ void measure(long long* ticks, float* out) {
    const long long start = clock64();
    const clock_t start_32 = clock();
    float x = threadIdx.x;
    for (int i = 0; i < 2000; ++i) x = x * 0.999f + 0.5f;
    out[threadIdx.x] = x;
    __threadfence();
    const long long middle = clock64();
    __threadfence_block();
    __nanosleep(100);
    __threadfence_system();
    const long long end = clock64();
    EXPECT(middle > start, true);
    EXPECT(end >= middle, true);
    EXPECT(clock() - start_32 >= 0, true);
    ticks[threadIdx.x] = end - start;
}

int main() {
    Buffer<long long> ticks(64);
    Buffer<float> out(64);
    measure<<<1, 64>>>(ticks.device, out.device);
    ticks.download();
    for (int i = 0; i < 64; ++i) EXPECT(ticks[i] > 0 && ticks[i] < 10000000000ll, true);
    return finish();
}
