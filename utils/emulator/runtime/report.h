// What went wrong, as one JSON line for the tool that started the program, or as text for a person.
#pragma once

#include "../include/emulator/runtime.h"

namespace emu {

struct Where {  // unknown parts stay empty
    const char* kernel = nullptr;
    uint3 block{}, thread{};
    EmuSite site{nullptr, 0};
    const void* pc = nullptr;
};

// Safe to call from a signal handler. `kind` is a word such as "deadlock".
void report(const char* kind, const Where& where, const char* message);

}  // namespace emu
