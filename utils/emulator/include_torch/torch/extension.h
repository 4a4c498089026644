// Stands in for PyTorch's header of this name, of which it takes the parts that kernels use:
// tensors and their functions, dispatch, and what binds functions to Python. The whole costs 25 s a
// build.
//
// Tensors that the emulator's kernels work on are the CPU's, and pose as those of a card.
#pragma once
#include <ATen/Dispatch.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#define is_cuda() is_cpu()
#define kCUDA kCPU
