// __reduce_*_sync, in hardware from compute capability 8.0 on.
#include "expect.cuh"

__global__ void reduce() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const int lane = threadIdx.x % 32;
    const unsigned word = 0x9e3779b9u * (lane + 1);
    unsigned sum = 0, least = ~0u, most = 0, all = ~0u, any = 0, odd = 0;
    int signed_least = 0x7fffffff, signed_most = -0x7fffffff - 1;
    for (unsigned k = 1; k <= 32; ++k) {  // each lane works the answers out alone
        const unsigned other = 0x9e3779b9u * k;
        sum += other, least = min(least, other), most = max(most, other);
        signed_least = min(signed_least, int(other)), signed_most = max(signed_most, int(other));
        all &= other | 0xff, any |= other & 0xff, odd ^= other;
    }
    EXPECT(__reduce_add_sync(~0u, word), sum);
    EXPECT(__reduce_add_sync(~0u, int(word)), int(sum));
    EXPECT(__reduce_add_sync(~0u, lane - 16), -16);
    EXPECT(__reduce_min_sync(~0u, word), least);
    EXPECT(__reduce_max_sync(~0u, word), most);
    EXPECT(__reduce_min_sync(~0u, int(word)), signed_least);
    EXPECT(__reduce_max_sync(~0u, int(word)), signed_most);
    EXPECT(__reduce_min_sync(~0u, lane - 20), -20);
    EXPECT(__reduce_max_sync(~0u, lane - 40), -9);
    EXPECT(__reduce_and_sync(~0u, word | 0xff), all);
    EXPECT(__reduce_or_sync(~0u, word & 0xff), any);
    EXPECT(__reduce_xor_sync(~0u, word), odd);
    if (lane < 3) {
        EXPECT(__reduce_add_sync(7u, 10u + lane), 33u);
        EXPECT(__reduce_and_sync(7u, 6u << lane), 0x8u & (6u << 2) & 12u & 6u);
    } else {
        EXPECT(__reduce_min_sync(~7u, unsigned(lane)), 3u);
        EXPECT(__reduce_xor_sync(~7u, 1u), 1u);  // 29 ones
    }
#else
    EXPECT(true, true);
#endif
}

int main() {
    reduce<<<2, 64>>>();
    return finish();
}
