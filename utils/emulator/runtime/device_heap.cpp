// malloc, free, new and delete in kernels. A kernel's library is linked so that these calls come
// here (build.link_flags): those of host code, and of a run that nobody watches, go on to the C
// library. There it is counted what kernels keep.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "block.h"
#include "heap.h"
#include "hazards.h"
#include "traffic.h"
#include "watch.h"

namespace emu {
namespace {

// Another host thread's kernel may run meanwhile: this thread's own counts.
bool in_watched_kernel() { return running.core && core() == running.core && core()->current; }

std::atomic<size_t> kept{0};  // bytes of the C library's that kernels have not given back

bool in_kernel() { return core() && core()->current; }

void* keep(void* first) {
    if (in_kernel()) kept += malloc_usable_size(first);
    return first;
}

void* let_go(void* first) {
    if (in_kernel()) kept -= malloc_usable_size(first);
    return first;
}

void* allocate(size_t bytes) {
    Allocation* a = heap().carve(bytes ? bytes : 1);
    return a ? a->first : nullptr;
}

// Whether the memory is a kernel's, which may also come back while nobody watches.
bool give_back(void* first, const void* pc) {
    if (heap().in_range(first) && heap().give_back(first)) return true;
    if (!in_watched_kernel() || !first) return false;
    Allocation* a = heap().find(first);
    if (!a && !heap().in_range(first)) return false;  // the C library's: from a run before
    tell_hazard(*running.core, hazard::bad_free, instruction_at(pc, kGlobal, kStore, 1), kStore,
                first, nullptr, "frees memory that is none from malloc, or has been freed");
    return true;
}

}  // namespace

size_t kept_by_kernels() { return kept; }

}  // namespace emu

using namespace emu;

extern "C" {

void* __wrap_malloc(size_t bytes) {
    return in_watched_kernel() ? allocate(bytes) : keep(malloc(bytes));
}
void __wrap_free(void* first) {
    if (!give_back(first, EMU_CALLER)) free(let_go(first));
}

#define EMU_NEW(symbol, function)                                                        \
    void* __wrap_##symbol(size_t bytes) {                                                \
        return in_watched_kernel() ? allocate(bytes) : keep(::operator function(bytes)); \
    }
#define EMU_DELETE(symbol, function, parameters)                               \
    void __wrap_##symbol parameters {                                          \
        if (!give_back(first, EMU_CALLER)) ::operator function(let_go(first)); \
    }
EMU_NEW(_Znwm, new)
EMU_NEW(_Znam, new[])
EMU_DELETE(_ZdlPv, delete, (void* first))
EMU_DELETE(_ZdaPv, delete[], (void* first))
EMU_DELETE(_ZdlPvm, delete, (void* first, size_t))
EMU_DELETE(_ZdaPvm, delete[], (void* first, size_t))
#undef EMU_NEW
#undef EMU_DELETE

}  // extern "C"
