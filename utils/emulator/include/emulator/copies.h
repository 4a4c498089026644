// memcpy, memmove and memset in an instrumented build: the compiler does not tell of what it copies
// without a load and a store of its own, nor of what the C library does.
#pragma once

#ifdef EMU_INSTRUMENTED
#    include <cstring>

#    include "emulator/runtime.h"

EMU_INLINE constexpr void* emu_memcpy(void* to, const void* from, size_t bytes) {
    // These the compiler makes a load and a store, of which it tells.
    const bool seen = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    if (__builtin_is_constant_evaluated() || (__builtin_constant_p(bytes) && seen))
        return __builtin_memcpy(to, from, bytes);
    emu_copy(to, from, bytes);
    return to;
}
EMU_INLINE constexpr void* emu_memmove(void* to, const void* from, size_t bytes) {
    if (__builtin_is_constant_evaluated()) return __builtin_memmove(to, from, bytes);
    emu_copy(to, from, bytes);
    return to;
}
EMU_INLINE constexpr void* emu_memset(void* to, int value, size_t bytes) {
    if (__builtin_is_constant_evaluated()) return __builtin_memset(to, value, bytes);
    emu_fill(to, value, bytes);
    return to;
}
namespace std {
using ::emu_memcpy;
using ::emu_memmove;
using ::emu_memset;
}  // namespace std
#    define memcpy emu_memcpy
#    define memmove emu_memmove
#    define memset emu_memset
#    define __builtin_memcpy emu_memcpy
#    define __builtin_memmove emu_memmove
#    define __builtin_memset emu_memset
#endif
