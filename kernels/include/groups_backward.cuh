// GroupNorm backwards, in registers. From exercises 12.2 and 12.3.
#pragma once

#include "column_sums.cuh"
#include "eps.cuh"
#include "groups.cuh"
#include "quad_math.cuh"

// A lane's four values of a group, normalised, and 1 / sqrt(variance + eps) of the group.
struct Normalised {
    float4 x;
    float rstd;
};

// v: a lane's values; LANES aligned neighbouring lanes have the group. All 32 lanes must call it.
template <int LANES>
__device__ inline Normalised normalise(float4 v) {
    v = v - warp_sum<LANES>(total(v)) / (4 * LANES);
    float rstd = rsqrtf(warp_sum<LANES>(total(v * v)) / (4 * LANES) + EPS);
    return {v * rstd, rstd};
}

// Backwards: from u, the gradient of n.x, the gradient of v. All 32 lanes must call it.
template <int LANES>
__device__ inline float4 through(Normalised n, float4 u) {
    float mean = warp_sum<LANES>(total(u)) / (4 * LANES);
    float along = warp_sum<LANES>(total(u * n.x)) / (4 * LANES);
    return (u - mean - n.x * along) * n.rstd;
}

// What one thread owns: four channels, in ROWS rows. Neighbouring threads own neighbouring quads;
// where a row ends, the next thread begins the next ROWS rows, which are the next part.
constexpr int ROWS = 16;
struct Stretch {
    int channel, part, row;  // the first of its channels, its part, and the first row of that

    __device__ explicit Stretch(int channels) {
        int thread = blockIdx.x * blockDim.x + threadIdx.x, quads = channels / 4;
        channel = thread % quads * 4;
        part = thread / quads;
        row = part * ROWS;
    }
    // sums: (parts, channels). The sums of this thread's channels, over its rows.
    __device__ void store(float* sums, float4 value, int rows, int channels) const {
        if (row < rows) quad(&sums[size_t(part) * channels + channel]) = value;
    }
};

// What stands before and after GroupNorm, backwards: here nothing. In a chain of its own an
// exercise has other functions of these names. p is the channel's parameter, dp its gradient, to
// which they add.
struct Nothing {
    // The value that is normalised.
    __device__ static float before(float y, float p) { return y; }
    // d, the gradient of that -> the gradient of y
    __device__ static float before_backward(float y, float p, float d, float& dp) { return d; }
    // g, the gradient of the result -> that of z, which GroupNorm gave
    __device__ static float after_backward(float z, float p, float g, float& dp) { return g; }
};

// The functions of a chain for a quad, member by member.
template <class Chain>
__device__ inline float4 before(float4 y, float4 p) {
    return {Chain::before(y.x, p.x), Chain::before(y.y, p.y), Chain::before(y.z, p.z),
            Chain::before(y.w, p.w)};
}
template <class Chain>
__device__ inline float4 before_backward(float4 y, float4 p, float4 d, float4& dp) {
    return {
        Chain::before_backward(y.x, p.x, d.x, dp.x), Chain::before_backward(y.y, p.y, d.y, dp.y),
        Chain::before_backward(y.z, p.z, d.z, dp.z), Chain::before_backward(y.w, p.w, d.w, dp.w)};
}
template <class Chain>
__device__ inline float4 after_backward(float4 z, float4 p, float4 g, float4& dp) {
    return {Chain::after_backward(z.x, p.x, g.x, dp.x), Chain::after_backward(z.y, p.y, g.y, dp.y),
            Chain::after_backward(z.z, p.z, g.z, dp.z), Chain::after_backward(z.w, p.w, g.w, dp.w)};
}

// Tensors of a call. parameter may be null, and bias, where the chain does not need z.
struct Inputs {
    const float *y, *weight, *bias, *parameter, *grad_out;
    int rows, channels, groups;
};

// dy: (rows, channels), as are the others: what each row adds to the gradients of weight, bias and
// parameter. For groups of any size.
// One thread owns every 32nd value of a group, one warp the group. One block owns 8.
template <class Chain>
__global__ void backward_any_size_kernel(Inputs in, float* dy, float* dweight, float* dbias,
                                         float* dparameter) {
    int group = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= in.rows * in.groups) return;  // the whole warp leaves
    int size = in.channels / in.groups, first = group * size, c = first % in.channels;
    auto p = [=](int i) { return in.parameter ? in.parameter[c + i] : 0.0f; };
    auto value = [=](int i) { return Chain::before(in.y[first + i], p(i)); };
    auto [mean, rstd] = statistics(size, EPS, value);
    float sum = 0.0f, along = 0.0f;
    for (int i = lane; i < size; i += 32) {
        float x = __fsub_rn(value(i), mean) * rstd, dp = 0.0f;
        float z = x * in.weight[c + i] + (in.bias ? in.bias[c + i] : 0.0f);
        float g = Chain::after_backward(z, p(i), in.grad_out[first + i], dp);
        if (dweight) dweight[first + i] = g * x;
        if (dbias) dbias[first + i] = g;
        if (dparameter) dparameter[first + i] = dp;
        dy[first + i] = g * in.weight[c + i];
        sum += dy[first + i];
        along += dy[first + i] * x;
    }
    sum = warp_sum(sum) / size;
    along = warp_sum(along) / size;
    for (int i = lane; i < size; i += 32) {
        float dp = 0.0f, x = __fsub_rn(value(i), mean) * rstd,
              d = (dy[first + i] - sum - x * along) * rstd;
        dy[first + i] = Chain::before_backward(in.y[first + i], p(i), d, dp);
        if (dparameter) dparameter[first + i] += dp;
    }
}

// The sums of a call: what the parts of the rows add to each gradient of a parameter, (parts,
// channels), and in the end all of them. For groups of other sizes each row is a part.
template <class Chain, int COUNT>
class Gradients {
    int parts, channels;
    Scratch<float> memory;

   public:
    Gradients(int rows, int channels, int groups)
        : parts(dispatch(channels / groups, [](auto) {}) ? (rows + ROWS - 1) / ROWS : rows),
          channels(channels),
          memory(size_t(COUNT) * parts * channels) {}

    // Those of gradient number i; null where the call wants fewer.
    float* part(int i) const { return i < COUNT ? memory.data + size_t(i) * parts * channels : 0; }

    // Blocks of so many threads, of which each owns a Stretch.
    int blocks(int threads) const { return (channels / 4 * parts + threads - 1) / threads; }

    // Starts launch(lanes) where lanes() lanes fill a group, or the slow path.
    template <class Launch>
    void launch(Launch launch, Inputs in, float* dy) const {
        if (dispatch(in.channels / in.groups, launch)) return;
        int blocks = (in.rows * in.groups + 7) / 8;
        backward_any_size_kernel<Chain><<<blocks, 256>>>(in, dy, part(0), part(1), part(2));
    }

    // The gradients themselves, (channels) each: in the order of their numbers.
    template <class... Outputs>
    void add_up(Outputs... outputs) const {
        int i = 0;
        (add_columns(part(i++), outputs, parts, channels), ...);
    }
};
