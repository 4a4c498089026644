// Looks through what is loaded, and remembers what it found until anything has left.
#include "code.h"

#include <link.h>

namespace emu {
namespace {

struct Search {
    const char* function;
    Code code;
    unsigned long long unloaded;  // modules, so far
};

int look_at(dl_phdr_info* module, size_t, void* argument) {
    static Search last{};
    Search& search = *static_cast<Search*>(argument);
    if (last.code.holds(search.function) && module->dlpi_subs == last.unloaded) {
        search.code = last.code;
        return 1;
    }
    for (int i = 0; i < module->dlpi_phnum; ++i) {
        const auto& part = module->dlpi_phdr[i];
        const char* begin = reinterpret_cast<const char*>(module->dlpi_addr + part.p_vaddr);
        const Code code{begin, begin + part.p_memsz};
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) || !code.holds(search.function))
            continue;
        search.code = code;
        search.unloaded = module->dlpi_subs;
        last = search;
        return 1;
    }
    return 0;
}

}  // namespace

Code code_around(const void* function) {
    Search search{static_cast<const char*>(function), {}, 0};
    dl_iterate_phdr(look_at, &search);
    return search.code;
}

}  // namespace emu
