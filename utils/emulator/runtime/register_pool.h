// The registers of a block: as many as a launch of its size can have at most, handed from warp to
// warp. A kernel that was compiled for fewer has fewer to hand on; that is not known here.
#pragma once

#include <vector>

#include "../include/emulator/runtime.h"

namespace emu {

constexpr int kRegisters = 65536;  // of a multiprocessor

struct RegisterPool {
    explicit RegisterPool(int threads);
    int each;                  // of a thread, when the block begins
    int left = 0;              // a thread of one warp: given back, not taken
    std::vector<int> of_warp;  // a thread
    // Who asked last for more than were left.
    int asked = 0;
    uint3 thread{};
    EmuSite site{};
    const void* pc = nullptr;
};

}  // namespace emu
