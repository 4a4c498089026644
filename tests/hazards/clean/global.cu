// Global memory: blocks apart from each other, atomics, launches one after the other.
#include "../case.cuh"

__global__ void guarded(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i];
}
CASE(guarded, 4, 32, zeros<float>(100), zeros<float>(100), 100)

__global__ void returns_early(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2 * in[i];
}
CASE(returns_early, 4, 32, zeros<float>(100), zeros<float>(100), 100)

__global__ void grid_stride(const float* in, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}
CASE(grid_stride, 3, 32, zeros<float>(1000), zeros<float>(1000), 1000)

__global__ void in_place(float* data) {
    int i = blockIdx.x * 32 + threadIdx.x;
    data[i] = data[i] * data[i] + 1;
    data[i] += 1;
}
CASE(in_place, 3, 32, zeros<float>(96))

__global__ void atomic_sum(const float* in, float* sum) {
    atomicAdd(sum, in[blockIdx.x * 32 + threadIdx.x]);
}
CASE(atomic_sum, 5, 32, zeros<float>(160), zeros<float>(1))

__global__ void atomics_of_all_kinds(int* x, unsigned* u) {
    atomicAdd(x, 1);
    atomicMax(x, int(threadIdx.x));
    atomicCAS(x, 3, 4);
    atomicExch(x, 5);
    atomicInc(u, 7);
    atomicOr(u, 1u);
}
CASE(atomics_of_all_kinds, 2, 64, zeros<int>(1), zeros<unsigned>(1))

__global__ void cas_loop(float* best, const float* in) {
    float mine = in[blockIdx.x * 32 + threadIdx.x];
    unsigned* word = reinterpret_cast<unsigned*>(best);
    unsigned seen = atomicAdd(word, 0u);
    while (__uint_as_float(seen) < mine) {
        unsigned now = atomicCAS(word, seen, __float_as_uint(mine));
        if (now == seen) break;
        seen = now;
    }
}
CASE(cas_loop, 2, 32, zeros<float>(1), zeros<float>(64))

__global__ void histogram(const int* in, int* bins) {
    atomicAdd(&bins[in[blockIdx.x * 32 + threadIdx.x] % 4], 1);
}
CASE(histogram, 4, 32, zeros<int>(128), zeros<int>(4))

__global__ void chars_of_blocks(char* out) { out[blockIdx.x * 3 + threadIdx.x] = 1; }
CASE(chars_of_blocks, 5, 3, zeros<char>(15))  // blocks share words, not bytes

__global__ void all_read_one(const float* in, float* out) {
    out[blockIdx.x * 32 + threadIdx.x] = in[0] + in[threadIdx.x / 8];
}
CASE(all_read_one, 3, 32, zeros<float>(4), zeros<float>(96))

__global__ void stencil(const float* in, float* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? in[i - 1] : 0, right = i < n - 1 ? in[i + 1] : 0;
    out[i] = (left + in[i] + right) / 3;
}
CASE_OF(buffers_swapped_between_launches) {
    float *a = zeros<float>(90), *b = zeros<float>(90);
    for (int step = 0; step < 6; ++step) {
        stencil<<<3, 32>>>(a, b, 90);
        float* t = a;
        a = b;
        b = t;
    }
}

__global__ void add_one(int* data) { data[threadIdx.x] += 1; }
CASE_OF(one_stream_after_the_other) {
    int* data = zeros<int>(32);
    cudaStream_t streams[3];
    for (auto& stream : streams) {
        cudaStreamCreate(&stream);
        add_one<<<1, 32, 0, stream>>>(data);
        cudaStreamSynchronize(stream);
    }
    for (auto& stream : streams) cudaStreamDestroy(stream);
}

CASE_OF(many_streams_apart) {
    int* data = zeros<int>(128);
    cudaStream_t streams[4];
    for (int i = 0; i < 4; ++i) {
        cudaStreamCreate(&streams[i]);
        add_one<<<1, 32, 0, streams[i]>>>(data + 32 * i);
    }
    cudaDeviceSynchronize();
    for (auto& stream : streams) cudaStreamDestroy(stream);
}

__global__ void fill(float* data) { data[blockIdx.x * 32 + threadIdx.x] = blockIdx.x; }
__global__ void gather(const float* data, float* out, int blocks) {
    float sum = 0;
    for (int b = 0; b < blocks; ++b) sum += data[b * 32 + threadIdx.x];
    out[threadIdx.x] = sum;
}
CASE_OF(second_launch_gathers) {
    float *data = fresh<float>(128), *out = fresh<float>(32);
    fill<<<4, 32>>>(data);
    gather<<<1, 32>>>(data, out, 4);
}

__global__ void transpose(const float* in, float* out, int rows, int cols) {
    int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (r < rows && c < cols) out[c * rows + r] = in[r * cols + c];
}
CASE(transpose, dim3(3, 2), dim3(8, 8), zeros<float>(14 * 20), zeros<float>(14 * 20), 14, 20)

__global__ void vectorised(const float4* in, float4* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) {
        float4 v = in[i];
        v.x += 1;
        out[i] = v;
    }
}
CASE(vectorised, 2, 32, zeros<float4>(40), zeros<float4>(40), 40)

__global__ void aligned_parts(float* data) {
    *reinterpret_cast<float2*>(data + 2) = make_float2(1, 2);
    reinterpret_cast<float4*>(data)[1] = make_float4(1, 2, 3, 4);
    *reinterpret_cast<double*>(data + 8) = 3;
}
CASE(aligned_parts, 1, 1, zeros<float>(12))

__device__ int visits;
__constant__ float weights[4];
__device__ float table[64];
__global__ void uses_symbols(float* out) {
    atomicAdd(&visits, 1);
    table[threadIdx.x] = weights[threadIdx.x % 4];
    out[threadIdx.x] = table[threadIdx.x];
}
CASE_OF(symbols) {
    float host[4] = {1, 2, 3, 4}, back[64];
    cudaMemcpyToSymbol(weights, host, sizeof host);
    uses_symbols<<<1, 64>>>(zeros<float>(64));
    cudaMemcpyFromSymbol(back, table, sizeof back);
    int zero = 0;
    cudaMemcpyToSymbol(visits, &zero, sizeof zero);
    uses_symbols<<<1, 64>>>(zeros<float>(64));
}

struct Matrix {
    float* data;
    int rows, cols;
    __device__ float& at(int r, int c) { return data[r * cols + c]; }
};
__global__ void struct_argument(Matrix m) {
    if (threadIdx.y < m.rows && threadIdx.x < m.cols) m.at(threadIdx.y, threadIdx.x) = 1;
}
CASE(struct_argument, 1, dim3(8, 8), Matrix{zeros<float>(30), 5, 6})

__global__ void pointers_in_memory(float** rows, int n) {
    for (int r = 0; r < n; ++r) rows[r][threadIdx.x] = r;
}
CASE_OF(rows_of_pointers) {
    float* host[3] = {fresh<float>(32), fresh<float>(32), fresh<float>(32)};
    float** rows = fresh<float*>(3);
    cudaMemcpy(rows, host, sizeof host, cudaMemcpyHostToDevice);
    pointers_in_memory<<<1, 32>>>(rows, 3);
}

CASE_OF(freed_and_allocated_again) {
    for (int i = 0; i < 5; ++i) {
        int* data = zeros<int>(32);
        add_one<<<1, 32>>>(data);
        cudaFree(data);
    }
}

CASE_OF(unified_memory) {
    int* data;
    cudaMallocManaged(&data, 32 * sizeof(int));
    for (int i = 0; i < 32; ++i) data[i] = i;
    add_one<<<1, 32>>>(data);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; ++i) data[i] *= 2;
    add_one<<<1, 32>>>(data);
}

CASE_OF(pinned_memory) {
    int* data;
    cudaMallocHost(&data, 32 * sizeof(int));
    memset(data, 0, 32 * sizeof(int));
    add_one<<<1, 32>>>(data);
    cudaDeviceSynchronize();
    cudaFreeHost(data);
}

__global__ void rows_with_pitch(char* m, size_t pitch, int height) {
    float* row = reinterpret_cast<float*>(m + blockIdx.x * pitch);
    if (blockIdx.x < height) row[threadIdx.x] = 1;
}
CASE_OF(pitched_rows) {
    char* m;
    size_t pitch;
    cudaMallocPitch(&m, &pitch, 20 * sizeof(float), 6);
    cudaMemset2D(m, pitch, 0, 20 * sizeof(float), 6);
    rows_with_pitch<<<8, 20>>>(m, pitch, 6);
}

template <class F>
__global__ void apply(F f, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) f(i);
}
CASE_OF(device_lambda) {
    int *in = zeros<int>(50), *out = zeros<int>(50);
    apply<<<2, 32>>>([=] __device__(int i) { out[i] = in[i] + 1; }, 50);
}

__global__ void local_arrays(float* out, int n) {
    float local[16];
    for (int i = 0; i < 16; ++i) local[(i * 5) % 16] = i;
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += local[i];
    out[threadIdx.x] = sum;
}
CASE(local_arrays, 1, 32, zeros<float>(32), 16)

__global__ void hundreds(int* count, int* last) {
    if (threadIdx.x == 0) atomicAdd(count, 1);
    last[blockIdx.x] = blockIdx.x;
}
CASE(hundreds, 700, 1, zeros<int>(1), zeros<int>(700))

__device__ const int steps[4] = {1, 3, 5, 7};
__global__ void constant_table(int* out) { out[threadIdx.x] = steps[threadIdx.x % 4]; }
CASE(constant_table, 1, 32, zeros<int>(32))

__global__ void makes_its_own_memory(int* out) {
    int* own = (int*)malloc(4 * sizeof(int));
    for (int i = 0; i < 4; ++i) own[i] = threadIdx.x + i;
    out[threadIdx.x] = own[threadIdx.x % 4];
    free(own);
}
CASE(makes_its_own_memory, 1, 32, zeros<int>(32))

__global__ void a_word_for_each_block(int* counts) { atomicAdd_block(&counts[blockIdx.x], 1); }
CASE(a_word_for_each_block, 3, 32, zeros<int>(3))

__global__ void atomics_of_a_block_and_then_of_all(int* own, int* sum) {
    atomicAdd_block(&own[blockIdx.x], 1);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, own[blockIdx.x]);
}
CASE(atomics_of_a_block_and_then_of_all, 3, 32, zeros<int>(3), zeros<int>(1))

__global__ void read_only_loads(const float* in, float* out) {
    out[threadIdx.x] = __ldg(&in[threadIdx.x]);
}
CASE_OF(what_the_launch_before_has_written_read_only) {
    float *a = zeros<float>(32), *b = zeros<float>(32);
    read_only_loads<<<1, 32>>>(a, b);
    read_only_loads<<<1, 32>>>(b, a);
}
