// What a kernel may be given: structs by value, arrays in structs, pointers to pointers; and
// cudaLaunchKernel with its array of addresses.
#include "expect.cuh"

struct View {
    const float* data;
    int rows, columns;
    __host__ __device__ float at(int row, int column) const { return data[row * columns + column]; }
};
struct Settings {
    char flag;
    double scale;
    float weights[5];
    short offset;
};

__global__ void with_struct(View in, float* out, Settings settings) {
    const int row = threadIdx.y, column = threadIdx.x;
    if (row >= in.rows || column >= in.columns) return;
    float sum = 0;
    for (int k = 0; k < 5; ++k) sum += settings.weights[k];
    out[row * in.columns + column] =
        float(in.at(row, column) * settings.scale) + sum + settings.offset + settings.flag;
}

// Each thread has its own copy of the arguments.
__global__ void own_copies(int n, Settings settings, int* out) {
    n += threadIdx.x;
    settings.weights[2] = n;
    __syncthreads();  // every thread has written its copy
    out[threadIdx.x] = n + int(settings.weights[2]);
}

__global__ void rows(float** pointers, int columns) {
    for (int k = threadIdx.x; k < columns; k += blockDim.x)
        pointers[blockIdx.x][k] = blockIdx.x + k;
}
struct Node {
    int value;
    Node* next;
};
__global__ void walk(const Node* node, int* sum) {
    for (; node; node = node->next) *sum += node->value;
}

__global__ void many(char c, short s, int i, long long l, float f, double d, bool b,
                     unsigned char u, const int* p, int2 pair, size_t size) {
    EXPECT(c, 'x');
    EXPECT(s, -300);
    EXPECT(i, 70000);
    EXPECT(l, 1ll << 40);
    EXPECT(f, 0.25f);
    EXPECT(d, 1e200);
    EXPECT(b, true);
    EXPECT(u, 200);
    EXPECT(p == nullptr, true);
    EXPECT(pair.x * pair.y, 12);
    EXPECT(size, size_t(5) << 33);
}
__global__ void constant_reference(const __grid_constant__ Settings settings, int* out) {
    out[threadIdx.x] = int(settings.weights[threadIdx.x % 5]);
}
template <class... Numbers>
__global__ void any_number(float* out, Numbers... numbers) {
    *out = (float(numbers) + ... + 0.0f);
}
__global__ void add(float* x, float value, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}
__global__ void nothing() {}

int main() {
    Buffer<float> in(6), out(6);
    for (int i = 0; i < 6; ++i) in[i] = float(i);
    in.upload();
    Settings settings = {1, 2.0, {1, 2, 3, 4, 5}, -6};
    with_struct<<<1, dim3(4, 4)>>>(View{in.device, 2, 3}, out.device, settings);
    settings.scale = 1000;  // too late to matter
    out.download();
    for (int i = 0; i < 6; ++i) EXPECT(out[i], 2.0f * i + 15 - 6 + 1);

    Buffer<int> ints(64);
    own_copies<<<1, 64>>>(1000, settings, ints.device);
    ints.download();
    for (int i = 0; i < 64; ++i) EXPECT(ints[i], 2 * (1000 + i));
    constant_reference<<<1, 5>>>(settings, ints.device);
    ints.download();
    EXPECT(ints[4], 5);

    Buffer<float> first(50), second(50);
    Buffer<float*> pointers(2);
    pointers[0] = first.device, pointers[1] = second.device;
    pointers.upload();
    rows<<<2, 32>>>(pointers.device, 50);
    first.download(), second.download();
    for (int k = 0; k < 50; ++k) EXPECT(second[k] - first[k], 1.0f);

    Buffer<Node> nodes(5);
    for (int i = 0; i < 5; ++i) nodes[i] = {1 << i, i < 4 ? nodes.device + i + 1 : nullptr};
    nodes.upload();
    Buffer<int> sum(1);
    walk<<<1, 1>>>(nodes.device, sum.device);
    sum.download();
    EXPECT(sum[0], 31);

    many<<<1, 1>>>('x', -300, 70000, 1ll << 40, 0.25f, 1e200, true, 200, nullptr, make_int2(3, 4),
                   size_t(5) << 33);
    any_number<<<1, 1>>>(out.device);
    any_number<<<1, 1>>>(out.device + 1, 1, 2.5, 'a', 4ull);
    nothing<<<1, 1>>>();
    out.download();
    EXPECT(out[0], 0.0f);
    EXPECT(out[1], 104.5f);

    float value = 2.5f;
    int n = 6;
    void* arguments[] = {&out.device, &value, &n};
    OK(cudaMemset(out.device, 0, out.bytes()));
    OK(cudaLaunchKernel(add, dim3(2), dim3(4), arguments, 0, 0));
    value = 1.0f;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceSynchronize());
    OK(cudaLaunchKernel(add, 1, 32, arguments, 0, stream));
    OK(cudaLaunchKernel(nothing, 1, 1, nullptr, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
    out.download();
    for (int i = 0; i < 6; ++i) EXPECT(out[i], 3.5f);
    return finish();
}
