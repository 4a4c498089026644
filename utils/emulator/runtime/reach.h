// Memory that was not allocated: a kernel's own variables, which are the device's, and the host's,
// which a GPU cannot reach.
#pragma once

#include <vector>

namespace emu {

class Core;

struct Range {
    const char *first, *end;
};
extern std::vector<Range> modules __attribute__((visibility("hidden")));

// In a writable segment of a library that kernels came from.
inline bool in_module(const void* address) {
    const char* p = static_cast<const char*>(address);
    for (const Range& r : modules)
        if (p >= r.first && p < r.end) return true;
    return false;
}

void lend_modules(const void* code);  // the variables of the module that holds this function

extern std::vector<const char*> host_pointers __attribute__((visibility("hidden")));  // a launch's

// For an address that is neither device memory nor shared: whether it is within reach of one of
// the launch's pointers to host memory.
bool in_host_memory(const Core& core, const void* address);

}  // namespace emu
