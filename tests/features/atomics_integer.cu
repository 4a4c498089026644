// Atomics on int, unsigned, long long and unsigned long long; global and shared; many blocks.
#include "expect.cuh"

constexpr int kBlocks = 64, kThreads = 128, kAll = kBlocks * kThreads;
typedef unsigned long long ull;

// Slots are named for what ends up in them.
struct Ints {
    int sum, difference, least, most, exchanged, bits_and, bits_or, bits_xor, ticket;
};
template <class T>
struct Unsigned {
    T sum, least, most, exchanged, bits_and, bits_or, bits_xor;
};

__device__ void on_ints(Ints* s, int i) {
    atomicAdd(&s->sum, i - 7);
    atomicSub(&s->difference, i);
    atomicMin(&s->least, 100 - i);
    atomicMax(&s->most, i - 100);
    EXPECT(atomicExch(&s->exchanged, i + 1) >= 0, true);
    atomicAnd(&s->bits_and, ~(1 << i % 31));
    atomicOr(&s->bits_or, 1 << i % 31);
    atomicXor(&s->bits_xor, i);
}
template <class T>
__device__ void on_unsigned(Unsigned<T>* s, int i) {
    const T big = T(~T(0)) - i;
    atomicAdd(&s->sum, big);
    atomicMin(&s->least, big);
    atomicMax(&s->most, big);
    atomicExch(&s->exchanged, big);
    atomicAnd(&s->bits_and, ~(T(1) << i % (8 * sizeof(T) - 1)));
    atomicOr(&s->bits_or, T(1) << i % (8 * sizeof(T) - 1));
    atomicXor(&s->bits_xor, big);
}

__global__ void in_global(Ints* ints, Unsigned<unsigned>* words, Unsigned<ull>* longs) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    on_ints(ints, i);
    on_unsigned(words, i);
    on_unsigned(longs, i);
}
__global__ void in_shared(Ints* ints, Unsigned<unsigned>* words, Unsigned<ull>* longs) {
    __shared__ Ints s;
    __shared__ Unsigned<unsigned> w;
    __shared__ Unsigned<ull> l;
    if (threadIdx.x == 0) s = *ints, w = *words, l = *longs;
    __syncthreads();  // the start values are there
    for (int i = threadIdx.x; i < kAll; i += blockDim.x) {
        on_ints(&s, i);
        on_unsigned(&w, i);
        on_unsigned(&l, i);
    }
    __syncthreads();  // every thread has done its share
    if (threadIdx.x == 0) *ints = s, *words = w, *longs = l;
}

template <class T>
void compare(const Unsigned<T>& s) {
    T sum = 0, bits_xor = 0;
    for (int i = 0; i < kAll; ++i) sum += T(~T(0)) - i, bits_xor ^= T(~T(0)) - i;
    EXPECT(s.sum, sum);
    EXPECT(s.least, T(~T(0)) - (kAll - 1));
    EXPECT(s.most, T(~T(0)));
    EXPECT(s.exchanged >= T(~T(0)) - (kAll - 1), true);
    EXPECT(s.bits_and, T(1) << (8 * sizeof(T) - 1));
    EXPECT(s.bits_or, T(~T(0)) >> 1);
    EXPECT(s.bits_xor, bits_xor);
}
template <class Kernel>
void sum_up(Kernel kernel, int blocks) {
    Buffer<Ints> ints(1, Ints{0, 0, 1000, -1000, 0, -1, 0, 0, 0});
    Buffer<Unsigned<unsigned>> words(1, {0, ~0u, 0, 0, ~0u, 0, 0});
    Buffer<Unsigned<ull>> longs(1, {0, ~0ull, 0, 0, ~0ull, 0, 0});
    kernel<<<blocks, kThreads>>>(ints.device, words.device, longs.device);
    ints.download(), words.download(), longs.download();
    const Ints& s = ints[0];
    int bits_xor = 0;
    for (int i = 0; i < kAll; ++i) bits_xor ^= i;
    EXPECT(s.sum, kAll * (kAll - 1) / 2 - 7 * kAll);
    EXPECT(s.difference, -kAll * (kAll - 1) / 2);
    EXPECT(s.least, 101 - kAll);
    EXPECT(s.most, kAll - 101);
    EXPECT(s.exchanged >= 1 && s.exchanged <= kAll, true);
    EXPECT(s.bits_and, int(0x80000000u));
    EXPECT(s.bits_or, 0x7fffffff);
    EXPECT(s.bits_xor, bits_xor);
    compare(words[0]);
    compare(longs[0]);
}

// Each atomic gives back what was there before: all tickets differ.
__global__ void tickets(int* next, int* holder, unsigned* ring_up, unsigned* ring_down,
                        ull* next_ull) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int ticket = atomicAdd(next, 1);
    EXPECT(atomicExch(&holder[ticket], i), -1);
    EXPECT(atomicInc(ring_up, 9) <= 9, true);    // 0, 1, ..., 9, 0, ...
    EXPECT(atomicDec(ring_down, 6) <= 6, true);  // 6, 5, ..., 0, 6, ...
    EXPECT(atomicAdd(next_ull, 1ull << 33) >> 33 < kAll, true);
}
__global__ void edges(unsigned* w, long long* s) {
    EXPECT(atomicInc(&w[0], 5), 17u);  // beyond the limit: back to 0
    EXPECT(w[0], 0u);
    EXPECT(atomicDec(&w[1], 5), 17u);  // beyond the limit: to the limit
    EXPECT(w[1], 5u);
    EXPECT(atomicMin(&s[0], -5ll), 3ll);
    EXPECT(atomicMax(&s[1], 1ll << 40), -3ll);
    EXPECT(s[0], -5ll);
    EXPECT(s[1], 1ll << 40);
}

__global__ void compare_and_swap(int* i, unsigned* u, ull* l, unsigned short* h) {
    EXPECT(atomicCAS(i, 3, 4), 3);
    EXPECT(atomicCAS(i, 3, 5), 4);
    EXPECT(*i, 4);
    EXPECT(atomicCAS(u, ~0u, 1u), ~0u);
    EXPECT(*u, 1u);
    EXPECT(atomicCAS(l, 1ull << 50, 2ull), 1ull << 50);
    EXPECT(*l, 2ull);
    EXPECT(atomicCAS(h, (unsigned short)65535, (unsigned short)7), 65535);
    EXPECT(*h, 7);
}

// A lock that each block's first thread takes in turn.
__global__ void locked(int* lock, volatile int* balance) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();  // what the last holder wrote is seen
        *balance = *balance + 2;
        __threadfence();  // before the lock is given back
        atomicExch(lock, 0);
    }
}

// A word of two halves is seen whole, or not yet.
__global__ void whole_words(ull* word, int* answer) {
    if (threadIdx.x) return;
    if (blockIdx.x == 1) {
        __nv_atomic_store_n(word, 7ull << 32 | 9, __NV_ATOMIC_RELAXED);
        *answer = 42;
        __nv_atomic_store_n(word, 8ull << 32 | 11, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
    } else {
        ull seen;
        while ((seen = __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED)) == 0) {
        }
        EXPECT(seen == (7ull << 32 | 9) || seen == (8ull << 32 | 11), true);
        while (__nv_atomic_load_n(word, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) >> 32 != 8) {
        }
        EXPECT(*answer, 42);
    }
}

// The last block to finish adds up what all have written.
__global__ void last_block(int* partial, unsigned* done, int* total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x + 1;
        __threadfence();  // the partial result is seen before the count
        last = atomicInc(done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();  // all know whether they are last
    if (last && threadIdx.x == 0)
        for (unsigned b = 0; b < gridDim.x; ++b) *total += ((volatile int*)partial)[b];
}

__global__ void histogram(const unsigned char* data, int n, int* bins) {
    __shared__ int mine[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) mine[b] = 0;
    __syncthreads();  // the bins are empty
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1);
    __syncthreads();  // the block has counted
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], mine[b]);
}

__global__ void scopes(int* sum, ull* sum_ull) {
    __shared__ int in_block;
    if (threadIdx.x == 0) in_block = 0;
    __syncthreads();  // the sum is 0
    atomicAdd_block(&in_block, 1);
    __syncthreads();  // all have added
    if (threadIdx.x == 0) atomicAdd_system(sum, in_block);
    atomicMax_system(sum_ull, ull(threadIdx.x));
}

int main() {
    sum_up(in_global, kBlocks);
    sum_up(in_shared, 1);

    Buffer<int> next(1), holders(kAll, -1);
    Buffer<unsigned> rings(2);
    Buffer<ull> next_ull(1);
    tickets<<<kBlocks, kThreads>>>(next.device, holders.device, rings.device, rings.device + 1,
                                   next_ull.device);
    next.download(), holders.download(), rings.download(), next_ull.download();
    EXPECT(next[0], kAll);
    for (int i = 0; i < kAll; ++i) EXPECT(holders[i] >= 0, true);
    EXPECT(rings[0], kAll % 10);
    EXPECT(rings[1], (7 - kAll % 7) % 7);
    EXPECT(next_ull[0], ull(kAll) << 33);

    Buffer<unsigned> w(2, 17);
    Buffer<long long> s(2, 3);
    s[1] = -3;
    s.upload();
    edges<<<1, 1>>>(w.device, s.device);
    LAUNCHED();

    Buffer<int> i(1, 3);
    Buffer<unsigned> u(1, ~0u);
    Buffer<ull> l(1, 1ull << 50);
    Buffer<unsigned short> h(2, 65535);
    compare_and_swap<<<1, 1>>>(i.device, u.device, l.device, h.device);
    LAUNCHED();

    Buffer<int> lock(1), balance(1);
    locked<<<200, 32>>>(lock.device, balance.device);
    balance.download();
    EXPECT(balance[0], 400);

    Buffer<int> partial(300), total(1);
    Buffer<unsigned> done(1);
    last_block<<<300, 32>>>(partial.device, done.device, total.device);
    total.download();
    EXPECT(total[0], 300 * 301 / 2);

    const int n = 20000;
    Buffer<unsigned char> data(n);
    Buffer<int> bins(256);
    std::vector<int> counted_on_host(256);
    for (int k = 0; k < n; ++k) ++counted_on_host[data[k] = k * k % 251];
    data.upload();
    histogram<<<10, 128>>>(data.device, n, bins.device);
    bins.download();
    for (int b = 0; b < 256; ++b) EXPECT(bins[b], counted_on_host[b]);

    Buffer<int> sum(1);
    Buffer<ull> word(1);
    Buffer<int> answer(1);
    whole_words<<<2, 32>>>(word.device, answer.device);

    Buffer<ull> sum_ull(1);
    scopes<<<20, 64>>>(sum.device, sum_ull.device);
    sum.download(), sum_ull.download();
    EXPECT(sum[0], 20 * 64);
    EXPECT(sum_ull[0], 63);
    return finish();
}
