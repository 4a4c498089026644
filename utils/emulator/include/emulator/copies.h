// memcpy and memset in an instrumented build: the compiler does not tell of what the C library
// does.
#pragma once

#ifdef EMU_INSTRUMENTED
#    include <cstring>

#    include "emulator/runtime.h"

EMU_INLINE void* emu_memcpy(void* to, const void* from, size_t bytes) {
    // These the compiler makes a load and a store of its own, of which it tells.
    const bool seen = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    if (!(__builtin_constant_p(bytes) && seen)) {
        emu_note_range(from, bytes, 0);
        emu_note_range(to, bytes, 1);
    }
    return __builtin_memcpy(to, from, bytes);
}
EMU_INLINE void* emu_memset(void* to, int value, size_t bytes) {
    emu_note_range(to, bytes, 1);
    return __builtin_memset(to, value, bytes);
}
namespace std {
using ::emu_memcpy;
using ::emu_memset;
}  // namespace std
#    define memcpy(...) emu_memcpy(__VA_ARGS__)
#    define memset(...) emu_memset(__VA_ARGS__)
#endif
