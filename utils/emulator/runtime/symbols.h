// The variables of a program or library, as its debug build names them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace emu {

struct Symbol {
    const char* first;
    size_t bytes;
    std::string name;
    bool constant;  // declared __constant__: see EMU_SECTION in types.h
};

// Of the file loaded at `base`; nothing where it has been stripped.
std::vector<Symbol> variables(const char* file, size_t base);

}  // namespace emu
