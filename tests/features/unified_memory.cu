// Managed memory and pinned host memory: one pointer for host and device.
#include "expect.cuh"

__managed__ int counter = 5;
__managed__ float shared_table[4];

__global__ void increment(int* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] += i;
    if (threadIdx.x == 0) counter += n;
    if (threadIdx.x < 4) shared_table[threadIdx.x] = 0.5f * threadIdx.x;
}
struct List {
    int value;
    List* next;
};
__global__ void double_all(List* list) {
    for (; list; list = list->next) list->value *= 2;
}

int main() {
    const int n = 100;
    int* x;
    OK(cudaMallocManaged(&x, n * sizeof(int)));
    for (int i = 0; i < n; ++i) x[i] = 1000;
    increment<<<1, 32>>>(x, n);
    LAUNCHED();
    for (int i = 0; i < n; ++i) EXPECT(x[i], 1000 + i);
    EXPECT(counter, 105);
    for (int i = 0; i < 4; ++i) EXPECT(shared_table[i], 0.5f * i);
    counter = 0;
    increment<<<1, 32>>>(x, n);
    LAUNCHED();
    EXPECT(counter, 100);
    EXPECT(x[99], 1198);

    // Copies to, from and within managed memory, of either declared kind.
    int host[4] = {1, 2, 3, 4};
    OK(cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(x + 4, x, sizeof(host), cudaMemcpyDefault));
    EXPECT(x[7], 4);
    OK(cudaMemset(x, 0, 2 * sizeof(int)));
    OK(cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost));
    EXPECT(host[0] + host[1], 0);
    EXPECT(host[2], 3);
    OK(cudaFree(x));
    EXPECT_ERROR(cudaMallocManaged(&x, 0), cudaSuccess);
    EXPECT_ERROR(cudaGetLastError(), cudaSuccess);

    // A list that the host builds and the device follows.
    List* head = nullptr;
    for (int i = 0; i < 10; ++i) {
        List* node;
        OK(cudaMallocManaged(&node, sizeof(List)));
        *node = {i, head};
        head = node;
    }
    double_all<<<1, 1>>>(head);
    LAUNCHED();
    for (int i = 9; head; --i) {
        EXPECT(head->value, 2 * i);
        List* next = head->next;
        OK(cudaFree(head));
        head = next;
    }

    // Pinned host memory has a device address.
    int *pinned, *mapped, *device_view;
    OK(cudaMallocHost(&pinned, n * sizeof(int)));
    for (int i = 0; i < n; ++i) pinned[i] = -i;
    Buffer<int> copy(n);
    OK(cudaMemcpyAsync(copy.device, pinned, copy.bytes(), cudaMemcpyHostToDevice, 0));
    copy.download();
    EXPECT(copy[99], -99);
    OK(cudaFreeHost(pinned));
    OK(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped));
    for (int i = 0; i < n; ++i) mapped[i] = 7;
    OK(cudaHostGetDevicePointer(&device_view, mapped, 0));
    increment<<<1, 64>>>(device_view, n);
    LAUNCHED();
    for (int i = 0; i < n; ++i) EXPECT(mapped[i], 7 + i);
    OK(cudaFreeHost(mapped));
    return finish();
}
