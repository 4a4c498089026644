// wgmma: products that a warp has begun with three others, of tiles in shared memory, or of one
// and of registers.
//
// A warp owns 16 rows of a and of the sums, and reads all of b. Nothing is multiplied before one of
// the four waits, when it is for all of them; until its own warp has waited, a sum is NaN.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "../include/emulator/runtime.h"

namespace emu {

struct AsyncOperation;
struct Exchange;

struct WarpProducts {
    using Rows = std::array<std::array<uint32_t, 8>, 16>;  // of a: 32 bytes along k each
    struct Product {
        int type;
        uint64_t a, b;               // descriptors
        bool mn;                     // rows of b lie along N
        std::unique_ptr<Rows> rows;  // where a is in registers
        bool add;
        uint16_t group;
        AsyncOperation* operation;
    };
    struct Sums {  // the same array of each lane
        int n;     // columns
        float* registers[32];
        std::vector<float> values;  // 16 rows of n
        std::deque<Product> products;
        const void* pc;        // of the last product
        bool held = false;     // the registers, by products that their warp has not waited for
        uint16_t newest = 0;   // group of these
        bool touched = false;  // by other instructions, since they were waited for
    };
    struct Fragment {  // the same array of each lane, that holds rows of a
        const uint32_t* registers[32];
        uint16_t newest;     // group of the products that read it
        bool held, touched;  // by these; by other instructions, since they were waited for
    };
    std::deque<Sums> sums;
    std::vector<Fragment> fragments;
    uint16_t group = 1;  // that is being made up
    bool fenced = false;
    int begun = 0;  // products, in all
    EmuSite site{};
    const void* pc = nullptr;
};

void combine_warpgroup(unsigned lanes, Exchange& exchange);

}  // namespace emu
