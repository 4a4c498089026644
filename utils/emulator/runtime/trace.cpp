// The functions that an instrumented build's compiler calls before every access, and the record
// that is kept of it. What an access means is watch.cpp's business.
#include "trace.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "block.h"
#include "heap.h"
#include "reach.h"
#include "watch.h"

namespace emu {
namespace {

// Whether a volatile access counts as a relaxed atomic one. (A build for that tells them apart.)
const bool volatile_atomic = getenv("EMU_VOLATILE_ATOMIC") != nullptr;

constexpr uint8_t kBlock = 3;  // in place of a kind of access

bool on = false, blocks_too = false;
size_t limit = 0;
bool truncated = false;
std::vector<Access> accesses;
std::vector<TracedLaunch> launches;
const char* dynamic_name;  // of the launches' dynamic shared memory, as the last one declares it
size_t dynamic_element;

// Notes one access of the running thread, for whoever is interested.
template <bool one = true>  // or several, in whatever parts
__attribute__((noinline)) void record(const void* address, size_t size, Kind kind,
                                      const void* return_address) {
    constexpr auto watch = one ? watch_access : watch_range;
    Core* c = core();
    // What another host thread does while this one's kernel runs is no thread's of the kernel.
    const bool here = c && c->current;
    if (running.core && here) watch(address, size, kind, (const char*)return_address - 1);
    else if (!here && watching() && heap().in_range(address))
        watch_host_access(address, size, kind, (const char*)return_address - 1);
    if (on && here) trace_access(address, size, kind, (const char*)return_address - 1);
}

// Notes that the running thread begins a basic block: of a warp its first lane, for all of it.
__attribute__((noinline)) void record_block(const void* return_address) {
    Core* c = core();
    if (!on || !blocks_too || !c || !c->current || c->current_index() % 32) return;
    if (accesses.size() >= limit) {
        truncated = true;
        return;
    }
    Access a{};
    a.pc = uint64_t(return_address);
    a.block = c->block_number();
    a.thread = uint32_t(c->current_index());
    a.phase = c->current->phase;
    a.write = kBlock;
    accesses.push_back(a);
}

void note_dynamic_array() {
    if (launches.empty() || !core() || !core()->shared.dynamic_name) return;
    dynamic_name = core()->shared.dynamic_name;
    dynamic_element = core()->shared.dynamic_element;
}

}  // namespace

bool tracing() { return on; }

void trace_access(const void* address, size_t size, Kind kind, const void* pc) {
    Core* c = core();
    if (!on) return;
    if (accesses.size() >= limit) {
        truncated = true;
        return;
    }
    Access a;
    ptrdiff_t offset = c->shared.offset(address);
    if (offset != SharedMemory::kElsewhere) {
        a.space = kShared;
        a.address = uint64_t(offset);
    } else if (c->stacks.holds((const char*)address)) {
        return;                                                   // the thread's own
    } else if (heap().in_range(address) || in_module(address)) {  // or beside an allocation
        a.space = kGlobal;
        a.address = uint64_t(address);
    } else {
        return;  // the launch's arguments, threadIdx and its kin
    }
    a.pc = uint64_t(pc);  // within the call, whose line is the access's
    a.block = c->block_number();
    a.thread = uint32_t(c->current_index());
    a.phase = c->current->phase;
    a.size = uint16_t(size);
    a.write = plain(kind);
    accesses.push_back(a);
}

void trace_launch(const Launch& launch) {
    if (!on) return;
    note_dynamic_array();  // of the launch before
    TracedLaunch t{};
    strncpy(t.kernel, launch.kernel, sizeof t.kernel - 1);
    const dim3 grid = launch.grid, block = launch.block;
    memcpy(t.grid, &grid, sizeof t.grid);
    memcpy(t.block, &block, sizeof t.block);
    t.first = accesses.size();
    t.shared = launch.shared;
    launches.push_back(t);
}

}  // namespace emu

using namespace emu;

extern "C" {

// Records the accesses of the launches that follow, and the basic blocks that warps begin if
// `with_blocks`; at most `most`.
void emu_trace_begin(size_t most, int with_blocks) {
    blocks_too = with_blocks;
    accesses.clear();
    launches.clear();
    dynamic_name = "dynamic";  // while nobody has declared it
    dynamic_element = 4;
    limit = most;
    truncated = false;
    on = true;
}
// Ends it. Returns the number recorded; *first is valid until the next begin.
size_t emu_trace_end(const Access** first, int* was_truncated) {
    on = false;
    note_dynamic_array();
    *first = accesses.data();
    *was_truncated = truncated;
    return accesses.size();
}

// Where the library that holds a code address is loaded.
uint64_t emu_module_base(const void* pc) {
    Dl_info info{};
    return dladdr(pc, &info) ? (uint64_t)info.dli_fbase : 0;
}
size_t emu_trace_launches(const TracedLaunch** first) {
    *first = launches.data();
    return launches.size();
}
// The shared arrays of the block that ran last, and the largest dynamic one: calls back with name,
// offset, element bytes and the extents, behind which stands a 0.
void emu_shared_arrays(void (*visit)(const char*, size_t, size_t, const size_t*)) {
    if (!core()) return;
    core()->shared.each_array([=](const EmuSharedKey& key, size_t offset) {
        visit(key.name, offset, key.element, key.extents);
    });
    uint64_t most = 0;
    for (const TracedLaunch& launch : launches) most = std::max(most, launch.shared);
    const size_t dynamic_extents[] = {most / dynamic_element, 0};
    if (most) visit(dynamic_name, SharedMemory::kDynamicAt, dynamic_element, dynamic_extents);
}

#define CALLED_FROM __builtin_return_address(0)
#define VOLATILE(plain, atomic) (volatile_atomic ? atomic : plain)
#define EMU_WATCH_RARE(N)                                                               \
    void __tsan_volatile_read##N(void* p) {                                             \
        record(p, N, VOLATILE(kLoad, kAtomicLoad), CALLED_FROM);                        \
    }                                                                                   \
    void __tsan_volatile_write##N(void* p) {                                            \
        record(p, N, VOLATILE(kStore, kAtomicStore), CALLED_FROM);                      \
    }                                                                                   \
    void __tsan_unaligned_read##N(void* p) { record<false>(p, N, kLoad, CALLED_FROM); } \
    void __tsan_unaligned_write##N(void* p) { record<false>(p, N, kStore, CALLED_FROM); }
#define EMU_WATCH(N)                                                   \
    void __tsan_read##N(void* p) { record(p, N, kLoad, CALLED_FROM); } \
    void __tsan_write##N(void* p) { record(p, N, kStore, CALLED_FROM); }
EMU_WATCH(1)
EMU_WATCH(2)
EMU_WATCH(8)
EMU_WATCH(16)
EMU_WATCH_RARE(1)
EMU_WATCH_RARE(2)
EMU_WATCH_RARE(4)
EMU_WATCH_RARE(8)
EMU_WATCH_RARE(16)
void __tsan_read4(void* p) {
    const char* pc = (const char*)CALLED_FROM - 1;
    if (on || !(watch_read_shared_word(p, pc) || watch_read_global_word(p, pc)))
        record(p, 4, kLoad, pc + 1);
}
void __tsan_write4(void* p) { record(p, 4, kStore, CALLED_FROM); }
void __tsan_read_range(void* p, size_t n) { record<false>(p, n, kLoad, CALLED_FROM); }
void __tsan_write_range(void* p, size_t n) { record<false>(p, n, kStore, CALLED_FROM); }
// A copy by the C library.
void emu_note_range(const void* p, size_t n, int writes) {
    if (n) record<false>(p, n, writes ? kStore : kLoad, CALLED_FROM);
}
void emu_copy(void* to, const void* from, size_t n) {
    if (!n) return;
    record<false>(from, n, kLoad, CALLED_FROM);
    record<false>(to, n, kStore, CALLED_FROM);
    memmove(to, from, n);
}
void emu_fill(void* to, int value, size_t n) {
    if (!n) return;
    record<false>(to, n, kStore, CALLED_FROM);
    memset(to, value, n);
}
// An atomic operation of the headers, which do it out of the compiler's sight.
void emu_note_atomic(const void* p, size_t n, int what) {
    const int how = what & ~EMU_OF_BLOCK;
    scope_of_block = what & EMU_OF_BLOCK;
    record(p, n,
           how == EMU_EXCHANGE  ? kExchange
           : how == EMU_COMPARE ? kCompare
                                : kAtomic,
           CALLED_FROM);
    scope_of_block = false;
}
void emu_note_read_only(const void* p, size_t n) {
    Core* c = core();
    if (running.core && c && c->current) watch_read_only(p, n, (const char*)CALLED_FROM - 1);
}
// The compiler calls it where a basic block begins.
void __sanitizer_cov_trace_pc() {
    watch_step();
    record_block(CALLED_FROM);
}
void emu_note_fence() { watch_fence(false); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** p, void*) { record(p, sizeof *p, kStore, CALLED_FROM); }
void __tsan_vptr_read(void** p) { record(p, sizeof *p, kLoad, CALLED_FROM); }

// The compiler replaces an atomic operation by a call, and the callee performs it.
#define EMU_UPDATE_KIND(BITS, T, NAME, BUILTIN, KIND)         \
    T __tsan_atomic##BITS##_##NAME(volatile T* p, T v, int) { \
        record((const void*)p, sizeof(T), KIND, CALLED_FROM); \
        return BUILTIN(p, v, __ATOMIC_SEQ_CST);               \
    }
#define EMU_UPDATE_BY(BITS, T, NAME, BUILTIN) EMU_UPDATE_KIND(BITS, T, NAME, BUILTIN, kAtomic)
#define EMU_COMPARE(BITS, T, NAME)                                                        \
    bool __tsan_atomic##BITS##_##NAME(volatile T* p, T* expected, T desired, int, int) {  \
        record((const void*)p, sizeof(T), kCompare, CALLED_FROM);                         \
        return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST, \
                                           __ATOMIC_SEQ_CST);                             \
    }
#define EMU_ATOMICS(BITS, T)                                           \
    T __tsan_atomic##BITS##_load(const volatile T* p, int) {           \
        record((const void*)p, sizeof(T), kAtomicLoad, CALLED_FROM);   \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                   \
    }                                                                  \
    void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {        \
        record((const void*)p, sizeof(T), kAtomicStore, CALLED_FROM);  \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                      \
    }                                                                  \
    EMU_UPDATE_KIND(BITS, T, exchange, __atomic_exchange_n, kExchange) \
    EMU_UPDATE_BY(BITS, T, fetch_add, __atomic_fetch_add)              \
    EMU_UPDATE_BY(BITS, T, fetch_sub, __atomic_fetch_sub)              \
    EMU_UPDATE_BY(BITS, T, fetch_and, __atomic_fetch_and)              \
    EMU_UPDATE_BY(BITS, T, fetch_or, __atomic_fetch_or)                \
    EMU_UPDATE_BY(BITS, T, fetch_xor, __atomic_fetch_xor)              \
    EMU_COMPARE(BITS, T, compare_exchange_strong)                      \
    EMU_COMPARE(BITS, T, compare_exchange_weak)
EMU_ATOMICS(8, uint8_t)
EMU_ATOMICS(16, uint16_t)
EMU_ATOMICS(32, uint32_t)
EMU_ATOMICS(64, uint64_t)
void __tsan_atomic_thread_fence(int) {
    watch_fence(true);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
