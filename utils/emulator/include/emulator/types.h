// Qualifiers, dim3 and the vector types of CUDA, for a host compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#define __host__
#define __device__
// A section for each: a const one and another cannot share theirs. In symbols.cpp they are found by
// its name.
#define EMU_TEXT_OF(x) #x
#define EMU_SECTION(number) __attribute__((used, section(".emu_constant." EMU_TEXT_OF(number))))
#ifdef EMU_INSTRUMENTED
#    define __constant__ EMU_SECTION(__COUNTER__)
#else
#    define __constant__
#endif
#define EMU_ELSEWHERE  // what the rewriter makes of an extern __constant__
#define __managed__
#define __grid_constant__
#ifdef EMU_INSTRUMENTED  // what a call's arguments read is announced only where it is inlined
#    define EMU_NOINLINE
#    define __global__ __attribute__((noinline))  // else it is compiled for its launch once more
#    define EMU_HOST __attribute__((noinline, cold))  // before a function for the host alone
#    define __forceinline__ inline  // always_inline is an error where a pointer to it is called
#else
#    define __forceinline__ inline __attribute__((always_inline))
#    define EMU_NOINLINE __attribute__((noinline))
#    define __global__
#    define EMU_HOST __attribute__((cold))
#endif
// Before a function that calls itself: a call that is its last act becomes a loop, as nvcc makes
// it.
#ifdef __clang__
#    define EMU_RECURSIVE
#else
#    define EMU_RECURSIVE __attribute__((optimize("optimize-sibling-calls")))
#endif
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

#define __inline__ inline
#define __host_stub__
#define __device_builtin__
#define __cudart_builtin__
#ifndef EMU_HOST_SOURCE  // a .cpp, which nvcc hands to the host's compiler
#    define __CUDACC__ 1
#    define __NVCC__ 1
#endif
#define __DRIVER_TYPES_H__  // what headers of NVIDIA's samples ask for
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __HOST_DEFINES_H__
#define __HOST_CONFIG_H__
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define WORKBOOK_EMULATOR 1  // for the rare program that must know

// A vector of 8 or 16 bytes is one access on a GPU. Under instrumentation gcc would split a copy of
// one into its members, to keep these apart in registers; not of a structure with something
// volatile in it, though it be of no size. In a union it leaves the type an aggregate, literal and
// trivial.
#ifdef EMU_INSTRUMENTED
#    define EMU_WHOLE                   \
        union {                         \
            char emu_none[0];           \
            volatile char emu_whole[0]; \
        };
#else
#    define EMU_WHOLE
#endif
#define EMU_VECTOR2(T, V, A)                  \
    struct __attribute__((aligned(A))) V##2 { \
        T x, y;                               \
        EMU_WHOLE                             \
    };                                        \
    inline V##2 make_##V##2(T x, T y) { return V##2 {x, y}; }
#define EMU_VECTOR4(T, V, A)                  \
    struct __attribute__((aligned(A))) V##4 { \
        T x, y, z, w;                         \
        EMU_WHOLE                             \
    };                                        \
    inline V##4 make_##V##4(T x, T y, T z, T w) { return V##4 {x, y, z, w}; }
// One and three elements are never one wide access.
#define EMU_VECTOR13(T, V)                            \
    struct V##1 { T x; };                             \
    struct V##3 { T x, y, z; };                       \
    inline V##1 make_##V##1(T x) { return V##1 {x}; } \
    inline V##3 make_##V##3(T x, T y, T z) { return V##3 {x, y, z}; }

#define EMU_VECTORS(T, V, A2, A4) EMU_VECTOR13(T, V) EMU_VECTOR2(T, V, A2) EMU_VECTOR4(T, V, A4)
EMU_VECTORS(signed char, char, 2, 4)
EMU_VECTORS(unsigned char, uchar, 2, 4)
EMU_VECTORS(short, short, 4, 8)
EMU_VECTORS(unsigned short, ushort, 4, 8)
EMU_VECTORS(int, int, 8, 16)
EMU_VECTORS(unsigned int, uint, 8, 16)
EMU_VECTORS(float, float, 8, 16)
// 32-byte vectors are two 16-byte accesses on a GPU; a plain struct copy is as good here.
#undef EMU_VECTOR4
#define EMU_VECTOR4(T, V, A)                                   \
    struct __attribute__((aligned(A))) V##4 { T x, y, z, w; }; \
    inline V##4 make_##V##4(T x, T y, T z, T w) { return V##4 {x, y, z, w}; }
EMU_VECTORS(long, long, 16, 16)
EMU_VECTORS(unsigned long, ulong, 16, 16)
EMU_VECTORS(long long, longlong, 16, 16)
EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
EMU_VECTORS(double, double, 16, 16)
#undef EMU_VECTORS
#undef EMU_VECTOR13
#undef EMU_VECTOR2
#undef EMU_VECTOR4

namespace emu {
// Its result is no constant, which would be stored member by member.
template <class T>
inline T whole(T vector) {
    return vector;
}

template <class T>
struct same {
    using type = T;
};

// `to = {...}` of any type. Its members become one value before that is stored.
template <class T>
inline T& assign(T& to, typename same<T>::type value) {
    return to = whole(static_cast<T&&>(value));
}
}  // namespace emu

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};
