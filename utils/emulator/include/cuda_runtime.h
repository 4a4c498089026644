// Stands in for NVIDIA's cuda_runtime.h: the same CUDA C++ source, compiled for the CPU.
#pragma once

#include <cstddef>
// Bessel functions and their kin in std: templates that every build would instantiate, and no
// kernel can call. A launcher does without.
#undef _GLIBCXX_USE_STD_SPEC_FUNCS

#include <cassert>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "emulator/access.h"
#include "emulator/api.h"
#include "emulator/arrays_api.h"
#include "emulator/pools_api.h"
#include "emulator/integers.h"
#include "emulator/math.h"
#include "emulator/rounding.h"
#include "emulator/copies.h"
