// Work of several streams that events, waits and the default stream order, or that shares nothing.
#include "../case.cuh"

constexpr int N = 1024;

__global__ void fill(float* x, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = value;
}
__global__ void add(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] += x[i];
}
static cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, flags);
    return made;
}
static cudaEvent_t event() {
    cudaEvent_t made;
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    return made;
}

CASE_OF(one_stream) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream();
    fill<<<4, 256, 0, a>>>(x, 1);
    add<<<4, 256, 0, a>>>(x, y);
}

CASE_OF(an_event_between_two_streams) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream(), b = stream();
    cudaEvent_t done = event();
    fill<<<4, 256, 0, a>>>(x, 1);
    cudaEventRecord(done, a);
    cudaStreamWaitEvent(b, done, 0);
    add<<<4, 256, 0, b>>>(x, y);
}

CASE_OF(by_way_of_a_third_stream) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream(), b = stream(), c = stream();
    cudaEvent_t one = event(), two = event();
    fill<<<4, 256, 0, a>>>(x, 1);
    cudaEventRecord(one, a);
    cudaStreamWaitEvent(b, one, 0);
    cudaEventRecord(two, b);
    cudaStreamWaitEvent(c, two, 0);
    add<<<4, 256, 0, c>>>(x, y);
}

CASE_OF(the_host_waits_for_a_stream) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream();
    fill<<<4, 256, 0, a>>>(x, 1);
    cudaStreamSynchronize(a);
    add<<<4, 256, 0, stream()>>>(x, y);
}

CASE_OF(the_host_waits_for_an_event) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaDeviceSynchronize();
    cudaStream_t a = stream();
    cudaEvent_t done = event();
    fill<<<4, 256, 0, a>>>(x, 1);
    cudaEventRecord(done, a);
    while (cudaEventQuery(done) == cudaErrorNotReady) {
    }
    add<<<4, 256, 0, stream()>>>(x, y);
}

CASE_OF(the_default_stream_waits_for_streams_that_block) {
    float *x = zeros<float>(N), *y = zeros<float>(N);
    cudaStream_t a = stream(cudaStreamDefault), b = stream(cudaStreamDefault);
    fill<<<4, 256, 0, a>>>(x, 1);
    add<<<4, 256>>>(x, y);
    add<<<4, 256, 0, b>>>(x, y);
}

CASE_OF(halves_of_an_array) {
    float* x = zeros<float>(2 * N);
    cudaDeviceSynchronize();
    fill<<<4, 256, 0, stream()>>>(x, 1);
    fill<<<4, 256, 0, stream()>>>(x + N, 2);
}

__global__ void fill_bytes(char* x, int step) { x[step * threadIdx.x] = 1; }
CASE_OF(every_other_byte) {
    char* x = zeros<char>(512);
    cudaDeviceSynchronize();
    fill_bytes<<<1, 256, 0, stream()>>>(x, 2);
    fill_bytes<<<1, 256, 0, stream()>>>(x + 1, 2);
}

CASE_OF(both_read) {
    float *x = zeros<float>(N), *y = zeros<float>(N), *z = zeros<float>(N);
    cudaDeviceSynchronize();
    add<<<4, 256, 0, stream()>>>(x, y);
    add<<<4, 256, 0, stream()>>>(x, z);
}

CASE_OF(freed_memory_given_to_another_stream) {
    float* x = zeros<float>(N);
    cudaDeviceSynchronize();
    fill<<<4, 256, 0, stream()>>>(x, 1);
    cudaFree(x);  // waits for the device
    fill<<<4, 256, 0, stream()>>>(fresh<float>(N), 1);
}

CASE_OF(a_pipeline_of_copies) {
    constexpr int PARTS = 4;
    float *x = zeros<float>(N * PARTS), *y = zeros<float>(N * PARTS), *host;
    cudaMallocHost(&host, N * PARTS * sizeof(float));
    memset(host, 0, N * PARTS * sizeof(float));
    cudaDeviceSynchronize();
    for (int i = 0; i < PARTS; i++) {
        cudaStream_t own = stream();
        size_t at = i * N, bytes = N * sizeof(float);
        cudaMemcpyAsync(x + at, host + at, bytes, cudaMemcpyHostToDevice, own);
        add<<<4, 256, 0, own>>>(x + at, y + at);
        cudaMemcpyAsync(host + at, y + at, bytes, cudaMemcpyDeviceToHost, own);
    }
    cudaDeviceSynchronize();
}

static float* managed() {
    float* x;
    cudaMallocManaged(&x, N * sizeof(float));
    return x;
}
CASE_OF(managed_memory_after_a_wait) {
    float *x = managed(), *y = managed();
    for (int i = 0; i < N; i++) x[i] = 1, y[i] = 0;
    add<<<4, 256>>>(x, y);
    cudaDeviceSynchronize();
    printf("%g\n", y[0]);
    x[0] = 2;
    add<<<4, 256>>>(x, y);
}

CASE_OF(managed_memory_that_both_read) {
    float *x = managed(), *y = zeros<float>(N);
    for (int i = 0; i < N; i++) x[i] = 1;
    add<<<4, 256>>>(x, y);
    printf("%g\n", x[0]);
}

CASE_OF(four_readers_that_a_writer_waits_for) {  // for the last two by way of one event
    float *x = zeros<float>(N), *y = zeros<float>(5 * N);
    cudaStream_t readers[4], writer = stream();
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; ++i) {
        readers[i] = stream();
        add<<<4, 256, 0, readers[i]>>>(x, y + i * N);
    }
    for (int i = 0; i < 3; ++i) {
        cudaEvent_t done = event();
        cudaEventRecord(done, readers[i]);
        cudaStreamWaitEvent(i < 2 ? writer : readers[3], done, 0);
    }
    add<<<4, 256, 0, readers[3]>>>(x, y + 4 * N);
    cudaEvent_t done = event();
    cudaEventRecord(done, readers[3]);
    cudaStreamWaitEvent(writer, done, 0);
    fill<<<4, 256, 0, writer>>>(x, 1);
}

CASE_OF(freed_behind_an_event) {
    cudaStream_t a = stream(), b = stream();
    cudaEvent_t done = event();
    float* x;
    cudaMallocAsync((void**)&x, N * sizeof(float), a);
    fill<<<4, 256, 0, a>>>(x, 1);
    cudaEventRecord(done, a);
    cudaStreamWaitEvent(b, done, 0);
    cudaFreeAsync(x, b);
}

static float* pinned() {
    float* x;
    cudaMallocHost(&x, N * sizeof(float));
    for (int i = 0; i < N; ++i) x[i] = 0;
    return x;
}
CASE_OF(pinned_memory_there_and_back_in_one_stream) {
    float *x = zeros<float>(N), *y = zeros<float>(N), *host = pinned();
    cudaStream_t s = stream();
    cudaDeviceSynchronize();
    for (int i = 0; i < 3; ++i) {  // the copy back comes behind the one there
        cudaMemcpyAsync(x, host, N * sizeof(float), cudaMemcpyHostToDevice, s);
        add<<<4, 256, 0, s>>>(x, y);
        cudaMemcpyAsync(host, y, N * sizeof(float), cudaMemcpyDeviceToHost, s);
    }
    cudaStreamSynchronize(s);
    host[0] = 5;
}
CASE_OF(pinned_memory_that_a_kernel_writes_behind_a_copy) {
    float *x = zeros<float>(N), *host = pinned(), *mapped;
    cudaHostGetDevicePointer((void**)&mapped, host, 0);
    cudaMemcpyAsync(x, host, N * sizeof(float), cudaMemcpyHostToDevice);
    fill<<<4, 256>>>(mapped, 1);
    cudaDeviceSynchronize();
    host[0] = 5;
}
CASE_OF(two_pinned_buffers_by_turns) {
    float *x = zeros<float>(2 * N), *host[] = {pinned(), pinned()};
    cudaEvent_t done[] = {event(), event()};
    for (int i = 0; i < 6; ++i) {
        if (i > 1) cudaEventSynchronize(done[i % 2]);
        host[i % 2][0] = float(i);
        cudaMemcpyAsync(x + i % 2 * N, host[i % 2], N * sizeof(float), cudaMemcpyHostToDevice);
        fill<<<4, 256>>>(x + i % 2 * N, 1);
        cudaEventRecord(done[i % 2]);
    }
}

__constant__ float factor;
__global__ void times_factor(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= factor;
}
CASE_OF(all_of_it_in_one_stream) {
    static float value = 2;
    cudaStream_t own = stream();
    float *x, *y = zeros<float>(N);
    cudaDeviceSynchronize();  // y is there
    cudaMallocAsync(&x, N * sizeof(float), own);
    cudaMemset2DAsync(x, 64, 0, 64, N / 16, own);
    cudaMemcpy2DAsync(x, 64, y, 64, 32, N / 16, cudaMemcpyDeviceToDevice, own);
    cudaMemcpyToSymbolAsync(factor, &value, sizeof value, 0, cudaMemcpyHostToDevice, own);
    times_factor<<<4, 256, 0, own>>>(x);
    cudaFreeAsync(x, own);
    cudaStreamSynchronize(own);
}
