// Half precision: 5 bits of exponent, 10 of fraction.
#pragma once

#include "cuda_runtime.h"
#include "emulator/narrow.h"

#define EMU_NAMED(a, b) a##half##b
#define EMU_FORMAT emu::Half
#define EMU_FLOAT __half
#define EMU_FLOAT2 __half2
#define EMU_BROADCAST __half2half2
#define EMU_RAW __half_raw
#include "emulator/narrow_types.h"
#include "emulator/narrow_functions.h"
#undef EMU_NAMED
#undef EMU_FORMAT
#undef EMU_FLOAT
#undef EMU_FLOAT2
#undef EMU_RAW
#undef EMU_BROADCAST

typedef __half half;
typedef __half2 half2;

#define CUDART_INF_FP16 __ushort_as_half(0x7C00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFF)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFF)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00)
