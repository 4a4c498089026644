// Device functions by pointer: a table in constant memory, and one handed to a kernel.
#include "check.cuh"

typedef int (*Operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ int larger(int a, int b) { return a > b ? a : b; }
__device__ Operation table[3] = {add, multiply, larger};
__device__ Operation chosen = multiply;

__global__ void apply(int which, const int* a, const int* b, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[which](a[i], b[i]);
}
__global__ void apply_one(Operation operation, const int* a, const int* b, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operation(a[i], b[i]);
}

int main() {
    const int n = 90;
    std::vector<int> a(n), b(n);
    for (int i = 0; i < n; ++i) a[i] = i, b[i] = 50 - i;
    int *ad = to_device(a), *bd = to_device(b), *out = to_device(a), wrong = 0;
    for (int which = 0; which < 3; ++which) {
        apply<<<2, 64>>>(which, ad, bd, out, n);
        const std::vector<int> got = to_host(out, n);
        for (int i = 0; i < n; ++i) {
            const int expected[] = {a[i] + b[i], a[i] * b[i], a[i] > b[i] ? a[i] : b[i]};
            wrong += got[i] != expected[which];
        }
    }
    Operation host_copy;
    CHECK(cudaMemcpyFromSymbol(&host_copy, chosen, sizeof host_copy));
    apply_one<<<2, 64>>>(host_copy, ad, bd, out, n);
    const std::vector<int> got = to_host(out, n);
    for (int i = 0; i < n; ++i) wrong += got[i] != a[i] * b[i];
    return verdict("function_tables", wrong);
}
