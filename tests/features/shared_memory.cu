// __shared__ in all its forms: static, 2D, dynamic, templates, structs, in functions and in loops.
#include "expect.cuh"

constexpr int kThreads = 64;

__global__ void reverse(const int* in, int* out) {
    __shared__ int tile[kThreads];
    tile[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
    __syncthreads();  // the tile is whole
    out[blockIdx.x * kThreads + threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void transpose(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[16][16 + 1];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    __syncthreads();  // the tile is whole
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void reverse_dynamic(const int* in, int* out) {
    extern __shared__ int dynamic_tile[];
    dynamic_tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();  // the tile is whole
    out[threadIdx.x] = dynamic_tile[blockDim.x - 1 - threadIdx.x];
}

// One piece of dynamic memory holds doubles, then ints, then bytes.
__global__ void several_types(double* doubles_out, int* ints_out, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    double* doubles = reinterpret_cast<double*>(raw);
    int* ints = reinterpret_cast<int*>(doubles + n);
    unsigned char* bytes = reinterpret_cast<unsigned char*>(ints + n);
    int i = threadIdx.x;
    doubles[i] = 0.5 * i;
    ints[i] = 7 * i;
    bytes[i] = i % 256;
    __syncthreads();  // all three are whole
    int other = (i + 1) % n;
    doubles_out[i] = doubles[other];
    ints_out[i] = ints[other] + bytes[other];
}

template <class T, int N>
__global__ void prefix_template(T* values) {
    __shared__ T tile[2][N];
    int from = 0;
    tile[from][threadIdx.x] = values[threadIdx.x];
    for (int step = 1; step < N; step *= 2) {
        __syncthreads();  // the last step's values are there
        T value = tile[from][threadIdx.x];
        if (threadIdx.x >= step) value += tile[from][threadIdx.x - step];
        tile[1 - from][threadIdx.x] = value;
        from = 1 - from;
    }
    values[threadIdx.x] = tile[from][threadIdx.x];
}

struct Particle {
    float position[3];
    int charge;
};
struct alignas(32) Cell {
    Particle first;
    double energy;
};
__global__ void structs(float* out) {
    __shared__ Particle particles[kThreads];
    __shared__ Cell cell;
    particles[threadIdx.x].position[2] = threadIdx.x;
    particles[threadIdx.x].charge = threadIdx.x % 3 - 1;
    if (threadIdx.x == 0) cell = Cell{{{1, 2, 3}, 4}, 5.0};
    __syncthreads();  // particles and cell are there
    EXPECT(reinterpret_cast<size_t>(&cell) % 32, 0);
    const Particle& other = particles[threadIdx.x ^ 1];
    out[threadIdx.x] = other.position[2] * other.charge + cell.first.position[1] + cell.energy;
}

// Several arrays and scalars in one declaration or many; none may overlap.
__global__ void several_arrays() {
    __shared__ int a[kThreads], b[kThreads], total;
    __shared__ float c[3][kThreads];
    __shared__ volatile short d[kThreads];
    int i = threadIdx.x;
    if (i == 0) total = 0;
    a[i] = i, b[i] = 1000 + i, d[i] = short(-i);
    for (int k = 0; k < 3; ++k) c[k][i] = 0.25f * k + i;
    __syncthreads();  // all arrays are whole, total is 0
    int j = kThreads - 1 - i;
    EXPECT(a[j], j);
    EXPECT(b[j], 1000 + j);
    EXPECT(d[j], -j);
    for (int k = 0; k < 3; ++k) EXPECT(c[k][j], 0.25f * k + j);
    atomicAdd(&total, i);
    __syncthreads();  // every thread has added
    EXPECT(total, kThreads * (kThreads - 1) / 2);
}

__device__ int block_sum(int value) {
    __shared__ int partial[kThreads];
    __syncthreads();  // the last call's sum has been read
    partial[threadIdx.x] = value;
    for (int step = kThreads / 2; step > 0; step /= 2) {
        __syncthreads();  // the partial sums of the last step are there
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    }
    __syncthreads();  // the sum is there
    return partial[0];
}
__device__ void fill(int* shared, int value) { shared[threadIdx.x] = value + threadIdx.x; }

__global__ void in_functions() {
    __shared__ int mine[kThreads];
    EXPECT(block_sum(1), kThreads);
    EXPECT(block_sum(threadIdx.x), kThreads * (kThreads - 1) / 2);
    fill(mine, 5);
    __syncthreads();  // filled
    EXPECT(mine[0] + mine[kThreads - 1], 10 + kThreads - 1);
}

// A declaration in a loop is the same memory every time around.
__global__ void in_a_loop() {
    for (int round = 0; round < 4; ++round) {
        __shared__ int kept[kThreads];
        if (round == 0) kept[threadIdx.x] = 0;
        kept[threadIdx.x] += round;
        __syncthreads();  // everybody has added this round
        EXPECT(kept[kThreads - 1 - threadIdx.x], round * (round + 1) / 2);
        __syncthreads();  // everybody has looked
    }
}

int main() {
    const int blocks = 50, n = blocks * kThreads;
    Buffer<int> in(n), out(n);
    for (int i = 0; i < n; ++i) in[i] = i * i % 1009;
    in.upload();
    reverse<<<blocks, kThreads>>>(in.device, out.device);
    out.download();
    for (int i = 0; i < n; ++i)
        EXPECT(out[i], in[i / kThreads * kThreads + kThreads - 1 - i % kThreads]);

    const int rows = 37, columns = 70;
    Buffer<float> matrix(rows * columns), transposed(rows * columns);
    for (int i = 0; i < rows * columns; ++i) matrix[i] = float(i);
    matrix.upload();
    transpose<<<dim3((columns + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(
        matrix.device, transposed.device, rows, columns);
    transposed.download();
    for (int i = 0; i < rows * columns; ++i)
        EXPECT(transposed[i], matrix[i % rows * columns + i / rows]);

    for (int threads : {1, 33, 256}) {
        reverse_dynamic<<<1, threads, threads * sizeof(int)>>>(in.device, out.device);
        out.download();
        for (int i = 0; i < threads; ++i) EXPECT(out[i], in[threads - 1 - i]);
    }

    const int m = 100;
    Buffer<double> doubles(m);
    several_types<<<1, m, m * (sizeof(double) + sizeof(int) + 1)>>>(doubles.device, out.device, m);
    doubles.download();
    out.download();
    for (int i = 0; i < m; ++i) {
        EXPECT(doubles[i], 0.5 * ((i + 1) % m));
        EXPECT(out[i], 8 * ((i + 1) % m));
    }

    Buffer<int> ints(32, 2);
    Buffer<double> halves(128, 0.5);
    prefix_template<int, 32><<<1, 32>>>(ints.device);
    prefix_template<double, 128><<<1, 128>>>(halves.device);
    ints.download();
    halves.download();
    for (int i = 0; i < 32; ++i) EXPECT(ints[i], 2 * (i + 1));
    for (int i = 0; i < 128; ++i) EXPECT(halves[i], 0.5 * (i + 1));

    Buffer<float> energies(kThreads);
    structs<<<1, kThreads>>>(energies.device);
    energies.download();
    for (int i = 0; i < kThreads; ++i) EXPECT(energies[i], float((i ^ 1) * ((i ^ 1) % 3 - 1) + 7));

    several_arrays<<<20, kThreads>>>();
    in_functions<<<20, kThreads>>>();
    in_a_loop<<<20, kThreads>>>();
    return finish();
}
