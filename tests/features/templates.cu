// Templates, functors, recursion, local arrays, and functions chosen at run time.
#include "expect.cuh"

template <class T, int N>
__global__ void scale(T* x, T factor) {
    T mine[N];
#pragma unroll
    for (int k = 0; k < N; ++k) mine[k] = x[threadIdx.x * N + k] * factor;
    for (int k = 0; k < N; ++k) x[threadIdx.x * N + k] = mine[k];
}
template <bool REVERSED, class T = int, int OFFSET = 1>
__global__ void number(T* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if constexpr (REVERSED) x[i] = T(n - 1 - i + OFFSET);
        else x[i] = T(i + OFFSET);
    }
}

struct Add {
    static constexpr int kStart = 0;
    __host__ __device__ int operator()(int a, int b) const { return a + b; }
};
struct Max {
    static constexpr int kStart = -1000000;
    __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
template <class Operation>
__global__ void reduce(const int* x, int n, int* out, Operation operation) {
    __shared__ int partial[128];
    int value = Operation::kStart;
    for (int i = threadIdx.x; i < n; i += 128) value = operation(value, x[i]);
    partial[threadIdx.x] = value;
    for (int step = 64; step > 0; step /= 2) {
        __syncthreads();  // the last step's values are there
        if (threadIdx.x < step)
            partial[threadIdx.x] = operation(partial[threadIdx.x], partial[threadIdx.x + step]);
    }
    if (threadIdx.x == 0) *out = partial[0];
}

struct Affine {  // a functor with a state
    float a, b;
    __device__ float operator()(float x) const { return a * x + b; }
};
template <class F>
__global__ void map(float* x, int n, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = f(x[i]);
}

template <int N>
struct Factorial {
    static constexpr long long value = N * Factorial<N - 1>::value;
};
template <>
struct Factorial<0> {
    static constexpr long long value = 1;
};

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__global__ void recursion(int* out) {
    out[threadIdx.x] = fibonacci(threadIdx.x % 12);
    EXPECT(ackermann(2, int(threadIdx.x % 3)), 2 * int(threadIdx.x % 3) + 3);
    EXPECT(Factorial<15>::value, 1307674368000ll);
}

// A local array with an index known only at run time.
__global__ void local_arrays(int* out, int seed) {
    int permutation[17];
    for (int i = 0; i < 17; ++i) permutation[i] = i * (seed + threadIdx.x % 16 + 1) % 17;
    for (int i = 1; i < 17; ++i)  // sorted by insertion
        for (int j = i; j > 0 && permutation[j - 1] > permutation[j]; --j) {
            const int kept = permutation[j];
            permutation[j] = permutation[j - 1];
            permutation[j - 1] = kept;
        }
    int wrong = 0;
    for (int i = 0; i < 17; ++i) wrong += permutation[i] != i;
    out[threadIdx.x] = wrong;
}

// Functions chosen at run time: a table in device memory, and virtual ones.
typedef int (*Function)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ Function functions[2] = {twice, square};
struct Shape {
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    __device__ Square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
};
struct Box : Square {
    int height;
    __device__ Box(int side, int height) : Square(side), height(height) {}
    __device__ int area() const override { return side * height; }
};
__global__ void chosen() {
    EXPECT(functions[threadIdx.x % 2](7), threadIdx.x % 2 ? 49 : 14);
    Square square(3);
    Box box(3, 5);
    const Shape* shape = threadIdx.x % 2 ? static_cast<const Shape*>(&box) : &square;
    EXPECT(shape->area(), threadIdx.x % 2 ? 15 : 9);
    auto local = [](int x) { return x + 1; };  // a lambda that stays on the device
    EXPECT(local(4), 5);
}

// Kernels are chosen on the host by pointer.
template <class T>
void run(void (*kernel)(T*, int), T* x, int n) {
    kernel<<<(n + 31) / 32, 32>>>(x, n);
}

int main() {
    Buffer<float> x(96, 3.0f);
    scale<float, 3><<<1, 32>>>(x.device, 0.5f);
    x.download();
    for (int i = 0; i < 96; ++i) EXPECT(x[i], 1.5f);
    map<<<3, 32>>>(x.device, 96, Affine{2, 1});
    x.download();
    for (int i = 0; i < 96; ++i) EXPECT(x[i], 4.0f);
    Buffer<long long> wide(32, 1ll << 40);
    scale<long long, 1><<<1, 32>>>(wide.device, 4);
    wide.download();
    EXPECT(wide[31], 1ll << 42);

    Buffer<int> ints(100);
    number<false><<<2, 64>>>(ints.device, 100);
    ints.download();
    EXPECT(ints[99], 100);
    run(number<true>, ints.device, 100);
    ints.download();
    EXPECT(ints[99], 1);
    auto kernel = &number<false, int, -5>;
    kernel<<<2, 64>>>(ints.device, 100);
    ints.download();
    EXPECT(ints[0], -5);
    void (*choices[])(int*, int) = {number<false>, number<true>};
    for (int k = 0; k < 2; ++k) {
        choices[k]<<<2, 64>>>(ints.device, 100);
        ints.download();
        EXPECT(ints[0], k ? 100 : 1);
    }

    Buffer<int> out(64);
    reduce<<<1, 128>>>(ints.device, 100, out.device, Add());
    reduce<Max><<<1, 128>>>(ints.device, 100, out.device + 1, Max());
    out.download();
    EXPECT(out[0], 5050);
    EXPECT(out[1], 100);

    recursion<<<1, 32>>>(out.device);
    out.download();
    const int fibonacci_numbers[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    for (int i = 0; i < 32; ++i) EXPECT(out[i], fibonacci_numbers[i % 12]);
    local_arrays<<<1, 64>>>(out.device, 0);
    out.download();
    for (int i = 0; i < 64; ++i) EXPECT(out[i], 0);
    chosen<<<1, 32>>>();
    return finish();
}
