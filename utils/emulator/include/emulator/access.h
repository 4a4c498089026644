// Loads and stores with a cache hint, the clock, the trap.
#pragma once

#include <ctime>
#include <type_traits>

#include "emulator/runtime.h"

// Loads and stores with a cache hint.
#define EMU_LOAD(name)                    \
    template <class T>                    \
    EMU_INLINE T name(const T* address) { \
        return *address;                  \
    }
EMU_LOAD(__ldcg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
// By a cache that does not see what the launch writes.
template <class T>
EMU_INLINE T __ldg(const T* address) {
#ifdef EMU_INSTRUMENTED
    emu_note_read_only(address, sizeof(T));
#endif
    return *address;
}
#define EMU_STORE(name)                                             \
    template <class T>                                              \
    EMU_INLINE void name(T* address, std::common_type_t<T> value) { \
        *address = value;                                           \
    }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

// One tick a nanosecond: differences are CPU time, no GPU's. The rewriter calls `clock()`
// emu_clock.
inline long long clock64() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
inline unsigned long long __globaltimer() { return (unsigned long long)clock64(); }
inline void __trap(emu::Here here = emu::Here()) { emu_trap(here); }
inline void __builtin_cuda_assume(bool) {}
#define __builtin_assume(condition) ((void)0)
inline unsigned __isGlobal(const void*) { return 1; }
