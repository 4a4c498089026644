// Functions that call themselves: a search in a sorted array, and a puzzle counted by each thread.
#include "check.cuh"

__device__ int find(const int* x, int first, int end, int value) {
    if (first >= end) return -1;
    const int middle = (first + end) / 2;
    if (x[middle] == value) return middle;
    return x[middle] < value ? find(x, middle + 1, end, value) : find(x, first, middle, value);
}
__device__ int queens(int n, unsigned columns, unsigned left, unsigned right, int row) {
    if (row == n) return 1;
    int count = 0;
    for (unsigned free = ~(columns | left | right) & ((1u << n) - 1); free; free &= free - 1) {
        const unsigned bit = free & -free;
        count += queens(n, columns | bit, (left | bit) << 1, (right | bit) >> 1, row + 1);
    }
    return count;
}
__global__ void work(const int* x, int n, int* got, int* boards) {
    const int t = threadIdx.x;
    got[t] = find(x, 0, n, 3 * t);
    if (t < 7) {
        const unsigned bit = 1u << t;
        atomicAdd(boards, queens(7, bit, bit << 1, bit >> 1, 1));
    }
}

int main() {
    const int n = 64;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = 2 * i;
    int *in = to_device(x), *got = to_device(std::vector<int>(32));
    int* boards = to_device(std::vector<int>(1));
    work<<<1, 32>>>(in, n, got, boards);
    int wrong = to_host(boards, 1)[0] != 40;
    const std::vector<int> places = to_host(got, 32);
    for (int t = 0; t < 32; ++t) wrong += places[t] != (t % 2 ? -1 : 3 * t / 2);
    return verdict("recursive_device", wrong);
}
