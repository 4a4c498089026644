// bfloat16: the upper half of a float, 8 bits of exponent, 7 of fraction.
#pragma once

#include "cuda_runtime.h"
#include "emulator/narrow.h"

#define EMU_NAMED(a, b) a##bfloat16##b
#define EMU_FORMAT emu::Bfloat16
#define EMU_FLOAT __nv_bfloat16
#define EMU_FLOAT2 __nv_bfloat162
#define EMU_BROADCAST __bfloat162bfloat162
#define EMU_RAW __nv_bfloat16_raw
#include "emulator/narrow_types.h"
#include "emulator/narrow_functions.h"
#undef EMU_NAMED
#undef EMU_FORMAT
#undef EMU_FLOAT
#undef EMU_FLOAT2
#undef EMU_RAW
#undef EMU_BROADCAST

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFF)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7F7F)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3F80)
