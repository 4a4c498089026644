// Kernels that access memory out of bounds, or read what nobody wrote: `out_of_bounds NAME` runs
// one, as a GPU's context does not survive it. memcheck and initcheck have a word on each.
#include "buffers.cuh"

#include <cstring>

constexpr int THREADS = 64;
__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// --- memcheck
// -------------------------------------------------------------------------------------
__global__ void read_past_end(const float* in, float* out) { out[index()] = in[index() + 1]; }
__global__ void write_past_end(float* out) { out[index() + 1] = 1; }
__global__ void write_before_start(float* out) { out[int(threadIdx.x) - 1] = 1; }
__global__ void read_far_away(const float* in, float* out) {
    out[index()] = in[index() + 100000000LL];
}
__global__ void no_guard(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void null_pointer(float* out) { out[index()] = 1; }
__global__ void misaligned_float2(const float* in, float* out) {
    const float2 v = *(const float2*)(in + 1 + 2 * (threadIdx.x % 8));
    out[index()] = v.x + v.y;
}
__global__ void misaligned_int(const char* in, float* out) {
    out[index()] = *(const int*)(in + threadIdx.x);
}
__global__ void shared_past_end(float* out) {
    __shared__ float s[THREADS];
    s[threadIdx.x + 1] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_past_end(float* out) {
    extern __shared__ float d[];
    d[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = d[threadIdx.x];
}
__global__ void use_after_free(float* freed) { freed[index()] = 1; }
__global__ void atomic_past_end(int* out) { atomicAdd(out + index() + 4, 1); }

// --- initcheck
// ------------------------------------------------------------------------------------
__global__ void read_unwritten(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void read_half_unwritten(const float* in, float* out) { out[index()] = in[index()]; }
__global__ void add_to_unwritten(float* out) { out[index()] += 1; }
__global__ void add_atomically_to_unwritten(float* out) { atomicAdd(out + threadIdx.x % 4, 1.0f); }
__global__ void read_own_write(float* out) {  // fine
    out[index()] = 1;
    out[index()] *= 2;
}

float* unwritten(int n) {
    float* device;
    check(cudaMalloc(&device, n * sizeof(float)));
    return device;
}

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "";
    float* in = filled(THREADS);
    float* out = filled(THREADS);
    auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("read_past_end")) read_past_end<<<1, THREADS>>>(in, out);
    else if (is("write_past_end")) write_past_end<<<1, THREADS>>>(out);
    else if (is("write_before_start")) write_before_start<<<1, THREADS>>>(out);
    else if (is("read_far_away")) read_far_away<<<1, THREADS>>>(in, out);
    else if (is("no_guard")) no_guard<<<2, 48>>>(in, out);
    else if (is("null_pointer")) null_pointer<<<1, THREADS>>>(nullptr);
    else if (is("misaligned_float2")) misaligned_float2<<<1, THREADS>>>(in, out);
    else if (is("misaligned_int")) misaligned_int<<<1, THREADS>>>((const char*)in, out);
    else if (is("shared_past_end")) shared_past_end<<<1, THREADS>>>(out);
    else if (is("dynamic_past_end")) dynamic_past_end<<<1, THREADS, 4 * THREADS - 16>>>(out);
    else if (is("use_after_free")) {
        check(cudaFree(in));
        use_after_free<<<1, THREADS>>>(in);
    } else if (is("atomic_past_end")) atomic_past_end<<<1, THREADS>>>((int*)out);
    else if (is("read_unwritten")) read_unwritten<<<1, THREADS>>>(unwritten(THREADS), out);
    else if (is("read_half_unwritten")) {
        float* half = unwritten(THREADS);
        check(cudaMemset(half, 0, THREADS / 2 * sizeof(float)));
        read_half_unwritten<<<1, THREADS>>>(half, out);
    } else if (is("add_to_unwritten")) add_to_unwritten<<<1, THREADS>>>(unwritten(THREADS));
    else if (is("add_atomically_to_unwritten"))
        add_atomically_to_unwritten<<<1, THREADS>>>(unwritten(THREADS));
    else if (is("read_own_write")) read_own_write<<<1, THREADS>>>(unwritten(THREADS));
    else return std::printf("there is no '%s'\n", name), 2;
    check(cudaDeviceSynchronize());
}
