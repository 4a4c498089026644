// Stands in for PyTorch's header of this name.
#pragma once
#include <c10/cuda/CUDAException.h>
