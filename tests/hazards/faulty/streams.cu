// Work of two streams, or of a stream and the host, in no order.
#include "../case.cuh"

constexpr int N = 1024;

static cudaStream_t stream() {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
}

__global__ void twice(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= 2;  // HAZARD race/streams
}
__global__ void once(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // WITH
}
CASE_OF(two_streams) {
    float* x = zeros<float>(N);
    cudaDeviceSynchronize();
    once<<<4, 256, 0, stream()>>>(x);
    twice<<<4, 256, 0, stream()>>>(x);
}

__global__ void thrice(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= 3;  // HAZARD race/streams
}
__global__ void first(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // WITH
}
CASE_OF(an_event_of_the_wrong_stream) {
    float* x = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream(), b = stream();
    cudaEvent_t done;
    cudaEventCreate(&done);
    first<<<4, 256, 0, a>>>(x);
    cudaEventRecord(done, b);
    cudaStreamWaitEvent(b, done, 0);
    thrice<<<4, 256, 0, b>>>(x);
}

__global__ void reads_late(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];  // HAZARD race/streams
}
CASE_OF(an_event_recorded_too_early) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream(), b = stream();
    cudaEvent_t done;
    cudaEventCreate(&done);
    cudaEventRecord(done, a);
    cudaMemsetAsync(x, 0, N * sizeof(float), a);
    cudaStreamWaitEvent(b, done, 0);
    reads_late<<<4, 256, 0, b>>>(x, y);
}

__global__ void default_one(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 1;  // HAZARD race/streams
}
CASE_OF(a_fill_beside_the_default_stream) {
    float* x = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaMemsetAsync(x, 0, N * sizeof(float), stream());
    default_one<<<4, 256>>>(x);
}

__global__ void fill_beside(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // WITH
}
static void copy_beside(float* x, float* y) {
    fill_beside<<<4, 256, 0, stream()>>>(x);
    cudaStream_t other = stream();
    cudaMemcpyAsync(y, x, N * 4, cudaMemcpyDeviceToDevice, other);  // HAZARD race/streams
}
CASE_OF(a_copy_beside_a_kernel) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    copy_beside(x, y);
}

static float* managed() {
    float* x;
    cudaMallocManaged(&x, N * sizeof(float));
    return x;
}
__global__ void fill_early(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // WITH
}
static void print_first(const float* x) {
    printf("%g\n", x[0]);  // HAZARD race/host
}
CASE_OF(managed_memory_read_too_early) {
    float* x = managed();
    fill_early<<<4, 256>>>(x);
    print_first(x);
}

__global__ void add_early(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += x[i];  // WITH
}
static void set_first(float* x) {
    x[0] = 2;  // HAZARD race/host
}
CASE_OF(managed_memory_written_too_early) {
    float *x = managed(), *y = zeros<float>(N);
    x[0] = 1;
    add_early<<<4, 256>>>(x, y);
    set_first(x);
}

__global__ void reads_second(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];  // WITH
}
__global__ void reads_otherwise(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}
__global__ void overwrites(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // HAZARD race/streams
}
CASE_OF(the_second_of_four_readers) {  // the writer's stream waits for all but that one
    float* x = zeros<float>(N);
    cudaStream_t readers[4], writer = stream();
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; ++i) {
        readers[i] = stream();
        float* y = fresh<float>(N);
        if (i == 1) reads_second<<<4, 256, 0, readers[i]>>>(x, y);
        else reads_otherwise<<<4, 256, 0, readers[i]>>>(x, y);
        cudaEvent_t done;
        cudaEventCreate(&done);
        cudaEventRecord(done, readers[i]);
        if (i != 1) cudaStreamWaitEvent(writer, done, 0);
    }
    overwrites<<<4, 256, 0, writer>>>(x);
}

__global__ void still_in_use(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 1;  // WITH
}
static void free_beside(float* x) {
    cudaFreeAsync(x, stream());  // HAZARD race/streams
}
CASE_OF(freed_in_another_stream) {
    cudaStream_t a = stream();
    float* x;
    cudaMallocAsync((void**)&x, N * sizeof(float), a);
    still_in_use<<<4, 256, 0, a>>>(x);
    free_beside(x);
}

__global__ void add_one(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 1;
}
static float* pinned() {
    float* x;
    cudaMallocHost(&x, N * sizeof(float));
    for (int i = 0; i < N; ++i) x[i] = 0;
    return x;
}
static void bring(float* x, const float* host) {
    cudaMemcpyAsync(x, host, N * 4, cudaMemcpyHostToDevice);  // HAZARD race/pinned
}
CASE_OF(pinned_memory_written_under_a_copy) {
    float *x = zeros<float>(N), *host = pinned();
    bring(x, host);
    host[N - 1] = 1;
    add_one<<<4, 256>>>(x);
}
static void bring_first(float* x, const float* host) {
    cudaMemcpyAsync(x, host, N * 4, cudaMemcpyHostToDevice);  // HAZARD race/pinned
}
CASE_OF(pinned_memory_written_behind_a_launch) {
    float *x = zeros<float>(N), *host = pinned();
    bring_first(x, host);
    add_one<<<4, 256>>>(x);
    host[0] = 1;
    cudaDeviceSynchronize();
}
static void bring_by_turns(float* x, const float* host) {
    cudaMemcpyAsync(x, host, N * 4, cudaMemcpyHostToDevice);  // HAZARD race/pinned
}
CASE_OF(pinned_memory_used_again_for_the_next_copy) {
    float *x = zeros<float>(2 * N), *host = pinned();
    for (int i = 0; i < 2; ++i) {
        host[i] = 1 + i;
        bring_by_turns(x + i * N, host);
        add_one<<<4, 256>>>(x + i * N);
    }
}

__global__ void add_two(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 2;  // HAZARD race/streams
}
CASE_OF(cleared_by_rows_in_another_stream) {
    float* x = zeros<float>(N);
    cudaMemset2DAsync(x, 64, 0, 32, N / 16, stream());
    add_two<<<4, 256>>>(x);
}

__global__ void add_three(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 3;  // HAZARD race/streams
}
CASE_OF(copied_by_rows_in_another_stream) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaMemcpy2DAsync(x, 64, y, 64, 32, N / 16, cudaMemcpyDeviceToDevice, stream());
    add_three<<<4, 256>>>(x);
}

__global__ void fill_four(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 4;  // HAZARD race/streams
}
CASE_OF(allocated_in_another_stream) {
    float* x;
    cudaMallocAsync(&x, N * sizeof(float), stream());
    fill_four<<<4, 256>>>(x);
}

__constant__ float factor;
__global__ void times_factor(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= factor;  // HAZARD race/streams
}
CASE_OF(constant_of_another_stream) {
    static float value = 2;
    float* x = zeros<float>(N);
    cudaMemcpyToSymbolAsync(factor, &value, sizeof value, 0, cudaMemcpyHostToDevice, stream());
    times_factor<<<4, 256>>>(x);
}
