// What the rewriter turns `kernel<<<...>>>(...)` and `__shared__` into.
#pragma once

#include <type_traits>
#include <utility>

#include "emulator/errors.h"
#include "emulator/runtime.h"

extern "C" cudaError_t emu_fail(cudaError_t error);  // as the call's result, and the last error

namespace emu {

template <class T>
constexpr size_t element() {  // bytes; 1 for void
    if constexpr (std::is_void_v<T> || std::is_function_v<T>) return 1;
    else return sizeof(T);
}
template <class T>
void note_argument(const T& value) {
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
        emu_note_pointer((const void*)value, element<std::remove_pointer_t<T>>());
}

struct Alone {
    Alone() { emu_begin_launch(); }
    ~Alone() { emu_end_launch(); }
};

// Arguments are evaluated once and copied, as a launch does; every thread gets its own copies.
// They are a closure's, and no std::tuple's, which would take longer to compile than many a kernel.
template <class Call, class... Arguments>
void launch(Config config, const char* kernel, Call call, Arguments&&... arguments) {
    if (config.beyond()) return (void)emu_fail(cudaErrorLaunchOutOfResources);
    auto thread = [call, ... copies = std::forward<Arguments>(arguments)]() mutable {
        call(copies...);
    };
#ifdef EMU_INSTRUMENTED
    Alone alone;  // what is noted here is of this launch
    emu_note_arguments(&thread, sizeof thread);
    (note_argument<std::decay_t<Arguments>>(arguments), ...);  // moved from, a pointer stays
#endif
    emu_launch(
        &config.grid, &config.block, config.shared, config.stream, kernel,
        [](void* body) { (*static_cast<decltype(thread)*>(body))(); }, &thread, config.site);
}

// Of an array type, outermost first, then a 0.
template <class T, class Dimensions = std::make_index_sequence<std::rank_v<T>>>
struct Extents;
template <class T, size_t... dimension>
struct Extents<T, std::index_sequence<dimension...>> {
    static constexpr size_t values[] = {std::extent_v<T, dimension>..., 0};
};
}  // namespace emu

// `emu_t_x` is the declared type, written by the rewriter. The key is a static of the surrounding
// function, so each template instance has its own.
#define EMU_KEY(name)                                                                    \
    static EmuSharedKey emu_k_##name = {#name,                                           \
                                        sizeof(emu_t_##name),                            \
                                        alignof(emu_t_##name),                           \
                                        sizeof(std::remove_all_extents_t<emu_t_##name>), \
                                        ::emu::Extents<emu_t_##name>::values,            \
                                        0,                                               \
                                        {__FILE__, __LINE__}};
#define EMU_SHARED(name) \
    EMU_KEY(name)        \
    emu_t_##name& name = *static_cast<emu_t_##name*>(emu_shared(&emu_k_##name));
#define EMU_DYNAMIC_SHARED(name)                             \
    using emu_e_##name = std::remove_extent_t<emu_t_##name>; \
    emu_e_##name* const name =                               \
        static_cast<emu_e_##name*>(emu_dynamic_shared(#name, sizeof(emu_e_##name)));

namespace emu {
// Shared memory declared outside a function: each use asks for the running block's.
template <class T>
struct SharedArray {  // extern __shared__ T name[]
    const char* name;
    operator T*() const { return static_cast<T*>(emu_dynamic_shared(name, sizeof(T))); }
    T* operator&() const { return *this; }
};
template <class T>
struct SharedObject {  // __shared__ T name
    mutable EmuSharedKey key;
    operator T&() const { return *static_cast<T*>(emu_shared(&key)); }
    template <class V>
    T& operator=(V&& value) const {
        return static_cast<T&>(*this) = std::forward<V>(value);
    }
    template <class U = T>
    auto& operator[](size_t i) const {
        return static_cast<U&>(*this)[i];
    }
    T* operator&() const { return &static_cast<T&>(*this); }
};
}  // namespace emu
#define EMU_DYNAMIC_SHARED_GLOBAL(name) \
    static const emu::SharedArray<std::remove_extent_t<emu_t_##name>> name{#name};
#define EMU_SHARED_GLOBAL(name)                                                                 \
    static const emu::SharedObject<emu_t_##name> name{                                          \
        {#name, sizeof(emu_t_##name), alignof(emu_t_##name),                                    \
         sizeof(std::remove_all_extents_t<emu_t_##name>), ::emu::Extents<emu_t_##name>::values, \
         0}};
