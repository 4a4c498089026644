// Groups of every size: those that fill a part of a warp with quads, and all others.
// From exercises 06.4 and 06.5.
#pragma once

#include <type_traits>

#include "reduce.cuh"

template <int LANES>
using Lanes = std::integral_constant<int, LANES>;

// Where quads of a group of `size` channels fill 1, 2, 4, 8, 16 or 32 lanes: calls launch(lanes),
// of which lanes() is that number, as a constant, and returns true. Returns false for other sizes.
template <class Launch>
bool dispatch(int size, Launch launch) {
    switch (size) {
        case 4: launch(Lanes<1>()); return true;
        case 8: launch(Lanes<2>()); return true;
        case 16: launch(Lanes<4>()); return true;
        case 32: launch(Lanes<8>()); return true;
        case 64: launch(Lanes<16>()); return true;
        case 128: launch(Lanes<32>()); return true;
        default: return false;
    }
}

// (x - mean) * rstd for the values x of one group.
struct Statistics {
    float mean, rstd;
};

// The statistics of value(0) to value(size - 1). One lane owns every 32nd of them, one warp all.
// All 32 lanes of the warp must call it.
// __fsub_rn: value(i) is rounded first. Were it a product, a fused multiply-add would take the mean
// off the exact one, and leave what the mean's rounding lost, 316 times as large behind a rstd of
// 1 / sqrt(eps): a group of one value would not be 0.
template <class Value>
__device__ Statistics statistics(int size, float eps, Value value) {
    int lane = threadIdx.x % 32;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) sum += value(i);
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float off = __fsub_rn(value(i), mean);
        squares += off * off;
    }
    return {mean, rsqrtf(warp_sum(squares) / size + eps)};
}

// What may stand before or after GroupNorm: nothing, a function of the value, or of the value and
// its channel's parameter.
__device__ inline float identity(float value) { return value; }
__device__ inline float applied(float (*f)(float), float value, const float*, int) {
    return f(value);
}
__device__ inline float applied(float (*f)(float, float), float value, const float* parameter,
                                int channel) {
    return f(value, parameter[channel]);
}

// y, out: (rows, channels), weight, bias: (channels), parameter: (channels) or null.
// out = AFTER(GroupNorm(BEFORE(y)))
// One thread owns every 32nd value of a group, one warp the group.
template <auto BEFORE, auto AFTER>
__global__ void groupnorm_any_size_kernel(const float* y, const float* weight, const float* bias,
                                          const float* parameter, float* out, int rows,
                                          int channels, int groups, float eps) {
    int group = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups, first = group * size, channel = first % channels;
    auto before = [=](int i) { return applied(BEFORE, y[first + i], parameter, channel + i); };
    auto [mean, rstd] = statistics(size, eps, before);
    for (int i = lane; i < size; i += 32) {
        float x = __fsub_rn(before(i), mean) * rstd * weight[channel + i] + bias[channel + i];
        out[first + i] = applied(AFTER, x, parameter, channel + i);
    }
}

// The launcher of that, for groups of any size. One block owns 8 groups.
template <auto BEFORE, auto AFTER>
void groupnorm_any_size(const float* y, const float* weight, const float* bias,
                        const float* parameter, float* out, int rows, int channels, int groups,
                        float eps) {
    int blocks = (rows * groups + 7) / 8;
    groupnorm_any_size_kernel<BEFORE, AFTER>
        <<<blocks, 8 * 32>>>(y, weight, bias, parameter, out, rows, channels, groups, eps);
}

// The least value of a row of GroupNorm that this lane met; INFINITY where it met none.
// row, weight, bias: (channels). One warp owns every WARPSth group, from number `warp` on.
// All 32 lanes of the warp must call it.
__device__ inline float least_of_lane(const float* row, const float* weight, const float* bias,
                                      int channels, int groups, float eps) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = channels / groups;
    float least = INFINITY;
    for (int group = warp; group < groups; group += blockDim.x / 32) {
        int channel = group * size;
        auto [mean, rstd] = statistics(size, eps, [=](int i) { return row[channel + i]; });
        for (int c = channel + lane; c < channel + size; c += 32) {
            least = smaller(least, (row[c] - mean) * rstd * weight[c] + bias[c]);
        }
    }
    return least;
}
