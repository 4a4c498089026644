// Copies from and to pinned memory in streams; the host waits in each way that CUDA has before it
// looks at what was copied, or writes to what was to be.
#include "check.cuh"

__global__ void add_one(int* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}

constexpr int n = 1000;
int *host, *device;
cudaStream_t stream;
cudaEvent_t event;

void there(int value) {
    for (int i = 0; i < n; ++i) host[i] = value;
    CHECK(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
    add_one<<<4, 256, 0, stream>>>(device, n);
}
void and_back() {
    CHECK(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
}
int differ(int value) {
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += host[i] != value;
    return wrong;
}
void CUDART_CB look(void* wrong) { *(int*)wrong += differ(7); }

int main() {
    int wrong = 0;
    CHECK(cudaMallocHost(&host, n * sizeof(int)));
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    there(1), and_back();
    CHECK(cudaStreamSynchronize(stream));
    wrong += differ(2);
    there(2), and_back();
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event));
    wrong += differ(3);
    there(3), and_back();
    CHECK(cudaEventRecord(event, stream));
    while (cudaEventQuery(event) == cudaErrorNotReady) {}
    wrong += differ(4);
    there(4), and_back();
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {}
    wrong += differ(5);
    there(5), and_back();
    CHECK(cudaDeviceSynchronize());
    wrong += differ(6);
    there(6), and_back();
    CHECK(cudaLaunchHostFunc(stream, look, &wrong));
    CHECK(cudaStreamSynchronize(stream));
    int* registered = new int[n];
    CHECK(cudaHostRegister(registered, n * sizeof(int), cudaHostRegisterDefault));
    CHECK(cudaMemcpyAsync(registered, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    wrong += registered[n - 1] != 7;
    CHECK(cudaHostUnregister(registered));
    delete[] registered;
    there(7), and_back();
    CHECK(cudaFree(device));  // waits, too
    wrong += differ(8);
    CHECK(cudaFreeHost(host));
    return verdict("pinned_copies", wrong);
}
