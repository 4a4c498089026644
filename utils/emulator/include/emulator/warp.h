// Barriers, warp collectives, atomics: what threads do together.
#pragma once

#include <cstring>
#include <type_traits>

#include "emulator/runtime.h"

#define EMU_HERE emu::Here here = emu::Here()

inline void __syncthreads(EMU_HERE) { emu_barrier(EMU_BARRIER_PLAIN, 0, here); }
inline int __syncthreads_count(int predicate, EMU_HERE) {
    return emu_barrier(EMU_BARRIER_COUNT, predicate, here);
}
inline int __syncthreads_or(int predicate, EMU_HERE) {
    return emu_barrier(EMU_BARRIER_COUNT, predicate, here) != 0;
}
inline int __syncthreads_and(int predicate, EMU_HERE) {
    return emu_barrier(EMU_BARRIER_COUNT, !predicate, here) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_HERE) {
    emu_collective(EMU_SYNCWARP, mask, 0, 0, here);
}
inline unsigned __activemask(EMU_HERE) { return emu_active_mask(here); }

// Fences order nothing here: a block's threads run on one CPU core, in program order.
inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    emu_fenced();
}
inline void __threadfence_block() {
#ifdef EMU_INSTRUMENTED
    emu_note_fence();
#endif
}
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { emu_pause(); }

namespace emu {

inline int lane() { return int(emu_thread() % 32); }

template <class T>
uint64_t bits(T value) {
    static_assert(sizeof(T) <= 8, "a warp exchanges values of at most 8 bytes");
    uint64_t result = 0;
    std::memcpy(&result, &value, sizeof(T));
    return result;
}
template <class T>
T value(uint64_t bits) {
    T result;
    std::memcpy(&result, &bits, sizeof(T));
    return result;
}
template <class T>
constexpr bool is_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;  // or a narrow type
template <class T>
T shuffle(int kind, unsigned mask, T v, int source, EmuSite site) {
    return value<T>(emu_collective(kind, mask, bits(v), source, site));
}
template <class T>
T shuffle_number(int kind, unsigned mask, T v, int source, EmuSite site) {
    static_assert(is_number<T>, "a shuffle takes one number: shuffle each member by itself");
    return shuffle(kind, mask, v, source, site);
}
// Lanes [first, last] of a lane's segment of `width` lanes.
inline int segment_first(int lane, int width) { return lane & ~(width - 1); }
inline int segment_last(int lane, int width) { return lane | (width - 1); }

}  // namespace emu

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32, EMU_HERE) {
    return emu::shuffle_number(EMU_SHUFFLE, mask, v,
                               emu::segment_first(emu::lane(), width) + (source & (width - 1)),
                               here);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, EMU_HERE) {
    const int lane = emu::lane(), source = lane - int(delta);
    return emu::shuffle_number(EMU_SHUFFLE_UP, mask, v,
                               source < emu::segment_first(lane, width) ? -1 : source, here);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, EMU_HERE) {
    const int lane = emu::lane(), source = lane + int(delta);
    return emu::shuffle_number(EMU_SHUFFLE_DOWN, mask, v,
                               source > emu::segment_last(lane, width) ? -1 : source, here);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, EMU_HERE) {
    const int lane = emu::lane(), source = lane ^ lanes;
    return emu::shuffle_number(EMU_SHUFFLE_XOR, mask, v,
                               source > emu::segment_last(lane, width) ? -1 : source, here);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_HERE) {
    return unsigned(emu_collective(EMU_BALLOT, mask, predicate != 0, 0, here));
}
inline int __any_sync(unsigned mask, int predicate, EMU_HERE) {
    return emu_collective(EMU_BALLOT, mask, predicate != 0, 0, here) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMU_HERE) {
    return emu_collective(EMU_BALLOT, mask, predicate == 0, 0, here) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T v, EMU_HERE) {
    return unsigned(emu_collective(EMU_MATCH_ANY, mask, emu::bits(v), 0, here));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T v, int* predicate, EMU_HERE) {
    unsigned lanes = unsigned(emu_collective(EMU_MATCH_ALL, mask, emu::bits(v), 0, here));
    *predicate = lanes != 0;
    return lanes;
}

#define EMU_REDUCE(name, type, kind)                                            \
    inline type name(unsigned mask, type v, EMU_HERE) {                         \
        return type(emu_collective(kind, mask, uint64_t(int64_t(v)), 0, here)); \
    }
EMU_REDUCE(__reduce_add_sync, int, EMU_REDUCE_ADD)
EMU_REDUCE(__reduce_add_sync, unsigned, EMU_REDUCE_ADD)
EMU_REDUCE(__reduce_min_sync, int, EMU_REDUCE_MIN_S)
EMU_REDUCE(__reduce_max_sync, int, EMU_REDUCE_MAX_S)
EMU_REDUCE(__reduce_min_sync, unsigned, EMU_REDUCE_MIN_U)
EMU_REDUCE(__reduce_max_sync, unsigned, EMU_REDUCE_MAX_U)
EMU_REDUCE(__reduce_and_sync, unsigned, EMU_REDUCE_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, EMU_REDUCE_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, EMU_REDUCE_XOR)
#undef EMU_REDUCE

// Atomics. Blocks run on several cores, so these are real ones, in the order-free form CUDA gives.
namespace emu {

template <class T, class Update>
__attribute__((no_sanitize_thread)) T atomic_update_unseen(T* address, Update update) {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    static_assert(sizeof(T) == sizeof(Word), "no atomic of this size");
    Word* word = reinterpret_cast<Word*>(address);
    Word seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T before = value<T>(seen);
        Word after = Word(bits(T(update(before))));
        if (__atomic_compare_exchange_n(word, &seen, after, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return before;
    }
}
template <class T, class Update>
EMU_INLINE T atomic_update(T* address, Update update, EmuAtomic what = EMU_UPDATE) {
#ifdef EMU_INSTRUMENTED
    emu_note_atomic(address, sizeof(T), what);
#endif
    return atomic_update_unseen(address, update);
}
template <class T, class Update>
EMU_INLINE T atomic_update_of_block(T* address, Update update, EmuAtomic what = EMU_UPDATE) {
    return atomic_update(address, update, EmuAtomic(what | EMU_OF_BLOCK));
}

}  // namespace emu

#define EMU_ATOMIC_BY(name, update, T, expression, ...)                                \
    EMU_INLINE T name(T* address, T v) {                                               \
        return emu::update(address, [=](T old) { return expression; }, ##__VA_ARGS__); \
    }
#define EMU_ATOMIC(name, T, expression, ...)                                          \
    EMU_ATOMIC_BY(name, atomic_update, T, expression, ##__VA_ARGS__)                  \
    EMU_ATOMIC_BY(name##_block, atomic_update_of_block, T, expression, ##__VA_ARGS__) \
    EMU_INLINE T name##_system(T* address, T v) { return name(address, v); }
#define EMU_ATOMIC_INTEGERS(name, expression, ...)                  \
    EMU_ATOMIC(name, int, expression, ##__VA_ARGS__)                \
    EMU_ATOMIC(name, unsigned, expression, ##__VA_ARGS__)           \
    EMU_ATOMIC(name, unsigned long long, expression, ##__VA_ARGS__) \
    EMU_ATOMIC(name, unsigned long, expression, ##__VA_ARGS__)
EMU_ATOMIC_INTEGERS(atomicAdd, old + v)
EMU_ATOMIC(atomicAdd, float, old + v)
EMU_ATOMIC(atomicAdd, double, old + v)
EMU_ATOMIC(atomicSub, int, old - v)
EMU_ATOMIC(atomicSub, unsigned, old - v)
EMU_ATOMIC_INTEGERS(atomicMin, v < old ? v : old)
EMU_ATOMIC_INTEGERS(atomicMax, v > old ? v : old)
EMU_ATOMIC(atomicMin, long long, v < old ? v : old)
EMU_ATOMIC(atomicMax, long long, v > old ? v : old)
EMU_ATOMIC_INTEGERS(atomicAnd, old& v)
EMU_ATOMIC_INTEGERS(atomicOr, old | v)
EMU_ATOMIC_INTEGERS(atomicXor, old ^ v)
EMU_ATOMIC_INTEGERS(atomicExch, (void(old), v), EMU_EXCHANGE)
EMU_ATOMIC(atomicExch, float, (void(old), v), EMU_EXCHANGE)
EMU_ATOMIC(atomicInc, unsigned, old >= v ? 0u : old + 1u)
EMU_ATOMIC(atomicDec, unsigned, old == 0u || old > v ? v : old - 1u)
#undef EMU_ATOMIC_INTEGERS
#undef EMU_ATOMIC
#undef EMU_ATOMIC_BY
#define EMU_CAS_BY(name, update, T)                                         \
    EMU_INLINE T name(T* address, T expected, T desired) {                  \
        auto next = [=](T old) { return old == expected ? desired : old; }; \
        T before = emu::update(address, next, EMU_COMPARE);                 \
        if (before != expected) emu_cas_failed();                           \
        return before;                                                      \
    }
#define EMU_CAS(T)                                                     \
    EMU_CAS_BY(atomicCAS, atomic_update, T)                            \
    EMU_CAS_BY(atomicCAS_block, atomic_update_of_block, T)             \
    EMU_INLINE T atomicCAS_system(T* address, T expected, T desired) { \
        return atomicCAS(address, expected, desired);                  \
    }
EMU_CAS(int)
EMU_CAS(unsigned)
EMU_CAS(unsigned short)
EMU_CAS(unsigned long)
EMU_CAS(unsigned long long)
#undef EMU_CAS
#undef EMU_CAS_BY

// Loads and stores that are atomic, with the compiler's own names for orders and scopes. An order
// is kept by a fence on its side; the relaxed one needs none.
enum {
    __NV_ATOMIC_RELAXED,
    __NV_ATOMIC_CONSUME,
    __NV_ATOMIC_ACQUIRE,
    __NV_ATOMIC_RELEASE,
    __NV_ATOMIC_ACQ_REL,
    __NV_ATOMIC_SEQ_CST
};
enum {
    __NV_THREAD_SCOPE_THREAD,
    __NV_THREAD_SCOPE_BLOCK,
    __NV_THREAD_SCOPE_CLUSTER,
    __NV_THREAD_SCOPE_DEVICE,
    __NV_THREAD_SCOPE_SYSTEM
};
template <class T>
EMU_INLINE T __nv_atomic_load_n(T* address, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
    if (order == __NV_ATOMIC_SEQ_CST) __threadfence();
    const T value = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    if (order != __NV_ATOMIC_RELAXED) __threadfence();
    return value;
}
template <class T>
EMU_INLINE void __nv_atomic_store_n(T* address, std::common_type_t<T> value, int order,
                                    int = __NV_THREAD_SCOPE_SYSTEM) {
    if (order != __NV_ATOMIC_RELAXED) __threadfence();
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}
