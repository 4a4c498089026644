// Where a module's code lies: whether a handler of a signal has interrupted a kernel, or a library
// that it calls. Asked there, so nothing here takes a lock: dladdr() does.
#pragma once

namespace emu {

struct Code {
    const char *begin = nullptr, *end = nullptr;
    bool holds(const void* address) const { return address >= begin && address < end; }
};

// Of the module that has this function. Not in a handler; one call at a time.
Code code_around(const void* function);

}  // namespace emu
