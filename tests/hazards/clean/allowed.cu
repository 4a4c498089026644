// What looks like a fault and is allowed: each of these was once a false alarm.
#include <new>

#include "../case.cuh"

// --- alignment belongs to single accesses, not to what is copied by parts

struct Three {
    char bytes[3];
};
struct Six {
    short x, y, z;
};
struct Packed {
    float x, y, z, w;  // 16 bytes, aligned to 4
};
__global__ void copies_structures(float3* a, const float3* b, Three* c, const Three* d, Six* e,
                                  const Six* f, Packed* g, const Packed* h) {
    const int t = threadIdx.x;
    a[t] = b[t];
    c[t] = d[t];
    e[t] = f[t];
    g[t] = h[t];
}
CASE_OF(copies_structures) {
    float* base = zeros<float>(1000);
    copies_structures<<<1, 32>>>(
        zeros<float3>(32), zeros<float3>(32), zeros<Three>(32), zeros<Three>(32), zeros<Six>(32),
        zeros<Six>(32), reinterpret_cast<Packed*>(base + 1), reinterpret_cast<Packed*>(base + 501));
}

__global__ void copies_bytes(char* to, const char* from, int n) {
    const int at = 1 + 40 * threadIdx.x;
    memcpy(to + at, from + at, 3);
    memcpy(to + at + 3, from + at, 6);
    memcpy(to + at + 10, from + at, 12);
    memcpy(to + at + 22, from + at, n);
    memset(to + at + 30, 0, 6);
}
CASE(copies_bytes, 1, 32, zeros<char>(2000), zeros<char>(2000), 8)

// --- one store instruction, one warp, one value

__global__ void all_lanes_store_the_sum(const float* in, float* out) {
    __shared__ float s[2];
    float v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    s[threadIdx.x / 32] = v;
    __syncthreads();
    out[threadIdx.x / 32] = s[0] + s[1];
}
CASE(all_lanes_store_the_sum, 1, 64, zeros<float>(64), zeros<float>(2))

__global__ void rows_of_a_warp(const float4* in, float4* out, int rows) {
    for (int row = 0; row < rows; ++row) {
        float4 v = in[row * 32 + threadIdx.x];
        for (int d = 16; d; d /= 2) v.x += __shfl_xor_sync(~0u, v.x, d);
        out[row] = make_float4(v.x, v.x, 0, row);
    }
}
CASE(rows_of_a_warp, 1, 32, zeros<float4>(96), fresh<float4>(3), 3)

// --- the last block sets the counter back

__device__ unsigned counted = 0;
__global__ void counter_set_back(float* partial, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = blockIdx.x;
        __threadfence();
        last = atomicInc(&counted, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    float sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += partial[i];
    atomicAdd(out, sum);
    if (threadIdx.x == 0) counted = 0;
}
CASE_OF(counter_set_back) {
    float *partial = fresh<float>(7), *out = zeros<float>(1);
    for (int i = 0; i < 2; ++i) counter_set_back<<<7, 32>>>(partial, out);
}

__global__ void counter_of_all_threads(unsigned* count, unsigned* out) {
    __shared__ unsigned before[64];
    before[threadIdx.x] = atomicAdd(count, 1);
    __syncthreads();
    bool last = false;
    for (int i = 0; i < 64; ++i) last |= before[i] == 64 * gridDim.x - 1;
    if (last && threadIdx.x == 40) *out = *count, *count = 0;
}
CASE(counter_of_all_threads, 3, 64, zeros<unsigned>(1), zeros<unsigned>(1))

// --- compare and swap, with a first guess from a plain load

__global__ void guess_and_swap(int* p) {
    int old = *p, assumed;
    do {
        assumed = old;
        old = atomicCAS(p, assumed, assumed + 1);
    } while (assumed != old);
}
CASE(guess_and_swap, 3, 64, zeros<int>(1))

__device__ float atomic_max(float* address, float value) {
    int* word = reinterpret_cast<int*>(address);
    int old = *word;
    while (__int_as_float(old) < value) {
        const int assumed = old;
        old = atomicCAS(word, assumed, __float_as_int(value));
        if (old == assumed) break;
    }
    return __int_as_float(old);
}
__device__ double atomic_add(double* address, double value) {
    auto* word = reinterpret_cast<unsigned long long*>(address);
    unsigned long long old = *word, assumed;
    do {
        assumed = old;
        old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__global__ void guesses_in_shared_memory(float* most, double* sum) {
    __shared__ float block_most;
    if (threadIdx.x == 0) block_most = 0;
    __syncthreads();
    atomic_max(&block_most, float(threadIdx.x * 37 % 64));
    __syncthreads();
    if (threadIdx.x % 16 == 0) atomic_max(most, block_most);
    atomic_add(sum, threadIdx.x);
}
CASE(guesses_in_shared_memory, 3, 64, zeros<float>(1), zeros<double>(1))

// --- an exchange needs nothing to have been there

__global__ void exchanges_into_fresh(int* out, float* values) {
    __shared__ int last;
    atomicExch(&out[threadIdx.x], 5);
    atomicExch(&values[threadIdx.x], 1.0f);
    atomicExch(&last, 7);
    __syncthreads();
    out[32 + threadIdx.x] = last + out[threadIdx.x];
}
CASE(exchanges_into_fresh, 1, 32, fresh<int>(64), fresh<float>(32))

// --- objects with virtual functions in shared memory

struct Shape {
    float size;
    __device__ explicit Shape(float size) : size(size) {}
    __device__ virtual float area() const { return size; }
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    __device__ explicit Square(float size) : Shape(size) {}
    __device__ float area() const override { return size * size; }
};
__global__ void objects_in_shared_memory(float* out) {
    __shared__ alignas(16) char room[2][sizeof(Square)];
    __shared__ Shape* shapes[2];
    if (threadIdx.x == 0) shapes[0] = new (room[0]) Shape(3);
    if (threadIdx.x == 1) shapes[1] = new (room[1]) Square(3);
    __syncthreads();
    out[threadIdx.x] = shapes[threadIdx.x % 2]->area();
}
CASE(objects_in_shared_memory, 1, 64, zeros<float>(64))

// --- a shuffle may reach beyond those that take part, where nobody uses what it brings

__global__ void guarded_shuffle(const float* in, float* out, int n) {
    const unsigned mask = __ballot_sync(~0u, threadIdx.x < n);
    if (threadIdx.x >= n) return;
    float v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_down_sync(mask, v, d);
        if (threadIdx.x + d < n) v += other;
    }
    if (threadIdx.x == 0) *out = v;
}
CASE(guarded_shuffle, 1, 32, zeros<float>(32), fresh<float>(1), 21)

// --- a flag between two warps of a block, with fences

__global__ void flag_and_fence(int* out) {
    __shared__ int data[32], ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[threadIdx.x] = threadIdx.x;
        __threadfence_block();
        atomicAdd(&ready, 1);
    } else {
        while (atomicAdd(&ready, 0) < 32) {
        }
        __threadfence_block();
        out[threadIdx.x - 32] = data[63 - threadIdx.x];
    }
}
CASE(flag_and_fence, 1, 64, fresh<int>(32))

__global__ void lock_in_a_block(int* out) {
    __shared__ int lock, balance;
    if (threadIdx.x == 0) lock = balance = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicExch(&lock, 1)) {
        }
        __threadfence_block();
        balance += 3;
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = balance;
}
CASE(lock_in_a_block, 1, 128, fresh<int>(1))

__global__ void ring_of_one(const int* in, int* out, int n) {  // the reader says when it has read
    __shared__ int slot, full;
    if (threadIdx.x == 0) full = 0;
    __syncthreads();
    for (int i = 0; i < n; ++i) {
        if (threadIdx.x == 0) {
            while (atomicAdd(&full, 0)) {
            }
            slot = in[i];
            __threadfence_block();
            atomicExch(&full, 1);
        } else if (threadIdx.x == 32) {
            while (!atomicAdd(&full, 0)) {
            }
            out[i] = slot;
            __threadfence_block();
            atomicExch(&full, 0);
        }
    }
}
CASE(ring_of_one, 1, 64, zeros<int>(5), fresh<int>(5), 5)

// --- memory that kernels allocate

struct Node {
    int value;
    Node* next;
};
__global__ void lists_of_nodes(int* out) {
    Node* first = nullptr;
    for (int i = 0; i < 3; ++i) first = new Node{i, first};
    int sum = 0;
    while (first) {
        sum += first->value;
        Node* next = first->next;
        delete first;
        first = next;
    }
    int* own = new int[5];
    for (int i = 0; i < 5; ++i) own[i] = sum;
    out[threadIdx.x] = own[threadIdx.x % 5];
    delete[] own;
}
CASE(lists_of_nodes, 1, 32, zeros<int>(32))

__global__ void one_allocates_for_all(int* out) {
    __shared__ int* all;
    if (threadIdx.x == 0) all = static_cast<int*>(malloc(64 * sizeof(int)));
    __syncthreads();
    all[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = all[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) free(all);
}
CASE(one_allocates_for_all, 2, 64, zeros<int>(128))

__device__ int* kept[32];
__global__ void allocates(int n) {
    kept[threadIdx.x] = static_cast<int*>(malloc(n * sizeof(int)));
    for (int i = 0; i < n; ++i) kept[threadIdx.x][i] = i;
}
__global__ void uses_and_frees(int* out, int n) {
    out[threadIdx.x] = kept[threadIdx.x][n - 1];
    free(kept[threadIdx.x]);
}
CASE_OF(allocated_by_one_launch_for_the_next) {
    allocates<<<1, 32>>>(7);
    uses_and_frees<<<1, 32>>>(zeros<int>(32), 7);
}
