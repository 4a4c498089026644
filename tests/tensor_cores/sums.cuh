// What the programs beside this one are held against: sums in double of the numbers as a tensor
// core sees them.
#pragma once

#include <cstring>

#include "../programs/check.cuh"

template <class T>
T narrow(float x) {
    return T(x);
}
template <>
__half narrow(float x) {
    return __float2half(x);
}
template <>
__nv_bfloat16 narrow(float x) {
    return __float2bfloat16(x);
}
double wide(float x) {  // as a tensor core sees a float
    unsigned bits;
    memcpy(&bits, &x, 4);
    bits &= 0xffffe000;
    memcpy(&x, &bits, 4);
    return x;
}
double wide(__half x) { return __half2float(x); }
double wide(__nv_bfloat16 x) { return __bfloat162float(x); }

// How many elements of c (m, n) are further from a (m, k) times b (n, k) transposed than the tensor
// core's rounding takes them: every step cuts once, and its terms 25 bits below the largest.
template <class T>
int count_wrong(const std::vector<T>& a, const std::vector<T>& b, const std::vector<float>& c,
                int m, int n, int k) {
    int count = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0, size = 0;
            for (int x = 0; x < k; ++x) {
                const double term = wide(a[i * k + x]) * wide(b[j * k + x]);
                sum += term, size += fabs(term);
            }
            count += !(fabs(c[size_t(i) * n + j] - sum) <= size * k * 0x1p-23);
        }
    return count;
}

template <class T>
std::vector<T> some(int n, unsigned seed) {
    std::vector<T> result;
    for (float x : some_floats(n, seed)) result.push_back(narrow<T>(x));
    return result;
}
