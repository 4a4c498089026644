// Streams, events, and work that waits for other work.
#include "expect.cuh"

__global__ void add(int* x, int value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}
__global__ void copy(const int* from, int* to, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
void note(void* counter) { ++*static_cast<int*>(counter); }

int main() {
    const int n = 10000, blocks = (n + 255) / 256;
    const size_t bytes = n * sizeof(int);
    cudaStream_t first, second, third;
    OK(cudaStreamCreate(&first));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    int least = 0, greatest = 0;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest <= least, true);
    OK(cudaStreamCreateWithPriority(&third, cudaStreamDefault, greatest));

    int *a, *b, *host;
    OK(cudaMalloc(&a, bytes));
    OK(cudaMalloc(&b, bytes));
    OK(cudaMallocHost(&host, bytes));
    for (int i = 0; i < n; ++i) host[i] = i;

    // One stream does its work in order.
    OK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, first));
    for (int k = 1; k <= 4; ++k) add<<<blocks, 256, 0, first>>>(a, k, n);
    // The second waits for the first through an event.
    cudaEvent_t ready;
    OK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    OK(cudaEventRecord(ready, first));
    OK(cudaStreamWaitEvent(second, ready, 0));
    copy<<<blocks, 256, 0, second>>>(a, b, n);
    add<<<blocks, 256, 0, second>>>(b, 100, n);
    OK(cudaStreamSynchronize(second));
    OK(cudaMemcpy(host, b, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(host[i], i + 110);
    OK(cudaEventQuery(ready));
    OK(cudaStreamQuery(first));

    int counter = 0;
    OK(cudaMemsetAsync(a, 0, bytes, third));
    OK(cudaLaunchHostFunc(third, note, &counter));
    add<<<blocks, 256, 0, third>>>(a, 7, n);
    OK(cudaLaunchHostFunc(third, note, &counter));
    OK(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, third));
    OK(cudaStreamSynchronize(third));
    EXPECT(counter, 2);
    for (int i = 0; i < n; ++i) EXPECT(host[i], 7);

    cudaEvent_t start, stop, never;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&stop));
    OK(cudaEventCreate(&never));
    OK(cudaEventRecord(start));
    for (int k = 0; k < 5; ++k) add<<<blocks, 256>>>(a, k, n);
    OK(cudaEventRecord(stop, 0));
    OK(cudaEventSynchronize(stop));
    float milliseconds = -1;
    OK(cudaEventElapsedTime(&milliseconds, start, stop));
    EXPECT(milliseconds > 0 && milliseconds < 10000, true);
    EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, start, never), cudaErrorInvalidResourceHandle);
    EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, ready, stop), cudaErrorInvalidResourceHandle);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    OK(cudaEventQuery(never));  // nothing recorded, nothing to wait for

    int* later;
    OK(cudaMallocAsync(&later, bytes, first));
    OK(cudaMemsetAsync(later, 0, bytes, first));
    add<<<blocks, 256, 0, first>>>(later, 3, n);
    OK(cudaMemcpyAsync(host, later, bytes, cudaMemcpyDeviceToHost, first));
    OK(cudaFreeAsync(later, first));
    OK(cudaStreamSynchronize(first));
    EXPECT(host[n - 1], 3);

    for (cudaEvent_t event : {ready, start, stop, never}) OK(cudaEventDestroy(event));
    for (cudaStream_t stream : {first, second, third}) OK(cudaStreamDestroy(stream));
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFreeHost(host));
    return finish();
}
