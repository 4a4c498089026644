// What an address is that no allocation holds: a module's variable, the thread's own, the host's.
#include "reach.h"

#include <link.h>
#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "block.h"
#include "heap.h"
#include "memory.h"
#include "symbols.h"
#include "watch.h"

namespace emu {

std::vector<Range> modules;
std::vector<const char*> host_pointers;

namespace {

const char *arguments_first = nullptr, *arguments_end = nullptr;

const char* stack_end() {  // of the host's stack
    static const char* end = [] {
        pthread_attr_t attributes;
        void* first = nullptr;
        size_t bytes = 0;
        if (!pthread_getattr_np(pthread_self(), &attributes)) {
            pthread_attr_getstack(&attributes, &first, &bytes);
            pthread_attr_destroy(&attributes);
        }
        return static_cast<const char*>(first) + bytes;
    }();
    return end;
}

// A kernel's own static variables (__device__, __constant__) are device memory too.
int lend_module(dl_phdr_info* info, size_t, void* address) {
    uintptr_t p = (uintptr_t)address;
    bool mine = false, fresh = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        mine |= h.p_type == PT_LOAD && p >= info->dlpi_addr + h.p_vaddr &&
                p < info->dlpi_addr + h.p_vaddr + h.p_memsz;
    }
    if (!mine) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_W)) continue;
        const char* first = (const char*)(info->dlpi_addr + h.p_vaddr);
        if (in_module(first)) continue;
        modules.push_back({first, first + h.p_memsz});
        fresh = true;
    }
    if (!fresh) return 1;
    const bool program = !info->dlpi_name || !*info->dlpi_name;
    const auto symbols = variables(program ? "/proc/self/exe" : info->dlpi_name, info->dlpi_addr);
    for (const Symbol& s : symbols) {
        if (!in_module(s.first)) continue;
        heap().lend(s.first, s.bytes, s.name.c_str());
        heap().find(s.first)->constant = s.constant;
    }
    if (symbols.empty())
        for (const Range& r : modules) heap().lend(r.first, size_t(r.end - r.first));
    return 1;
}

}  // namespace

void lend_modules(const void* code) { dl_iterate_phdr(lend_module, const_cast<void*>(code)); }

bool in_host_memory(const Core& core, const void* address) {
    const char* p = static_cast<const char*>(address);
    constexpr ptrdiff_t kNear =
        64 * 1024;  // thread-local variables of ours; the stack from here on
    if (core.stacks.holds(p) || (p >= arguments_first && p < arguments_end) || is_pinned(p))
        return false;
    if (std::abs(p - reinterpret_cast<const char*>(&threadIdx)) < 4096) return false;
    const char *stack = static_cast<const char*>(core.launch->argument), *end = stack_end();
    const bool on_stack = p >= stack - kNear && p < end;
    for (const char* pointer : host_pointers) {
        const bool pointer_on_stack = pointer >= stack - kNear && pointer < end;
        if (on_stack ? pointer_on_stack && p >= pointer && p < pointer + kNear : !pointer_on_stack)
            return true;
    }
    return false;
}

}  // namespace emu

using namespace emu;

extern "C" {

// The launch that follows: its arguments' copies, and those of them that are pointers.
void emu_note_arguments(const void* copies, size_t bytes) {
    host_pointers.clear();
    arguments_first = static_cast<const char*>(copies);
    arguments_end = arguments_first + bytes;
}
void emu_note_pointer(const void* pointer, size_t element) {
    if (!watching() || !pointer) return;
    if (Allocation* a = heap().find(pointer)) {
        if (a->element == 1) a->element = element;
    } else if (!heap().in_range(pointer) && !is_pinned(pointer) && !in_module(pointer)) {
        host_pointers.push_back(static_cast<const char*>(pointer));
    }
}

}  // extern "C"
