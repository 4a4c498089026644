#pragma once

#include "scale.cuh"  // a cycle, which the guards break

namespace parts {
struct Shape {
    int rows, cols;
    __host__ __device__ int count() const { return rows * cols; }
};
}  // namespace parts
