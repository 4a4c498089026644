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
#include <utility>
#include <vector>

#include "../include/emulator/runtime.h"
#include "under_way.h"

namespace emu {

struct Exchange;

// Tiles that the four warps have read since anything was last stored, and which of the stores
// before that they had waited for. A tile is read many times, by each of them and for several
// products: what is known to be well is not looked at again.
class TileReads {
   public:
    struct Read {
        uint64_t descriptor;
        int row, rows;  // along N where `mn`
        bool mn;
        const void* pc;  // whose products read it
        uint16_t group;
        bool operator==(const Read& other) const;
    };
    // Whether one who knows of `clock` reads it without a hazard, as another one did.
    bool are_clean(const Read& read, const Clock& clock);
    void note(const Read& read, const Met& met);

   private:
    std::vector<std::pair<Read, Met>> all_;
    uint32_t phase_ = 0, stores_ = 0;  // of the block; to its shared memory
};

// What a lane brings to a product.
struct LaneRequest {
    int type, n;
    float* d;
    uint64_t a, b;
    const uint32_t* fragment;  // where a is in registers,
    uint32_t of_a[4];          // and what they hold
    int mn, add;
    EmuSite site;
    const void* pc;
};
// Products that lanes have asked for and not met for: while nobody watches, that is soon enough
// where they say that they have begun them all.
struct PendingProducts {
    static constexpr int kMost = 32;
    int count[32] = {};  // by lane
    LaneRequest requests[kMost][32];
};

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
        float* registers[32] = {};
        uint32_t taken = 0;         // lanes whose registers hold NaN, since `values` has theirs
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
    std::unique_ptr<PendingProducts> pending;  // null: none so far
    TileReads reads;                           // of four warps, where this is the first
    Clock known;                               // what any lane has learned to be over,
    uint32_t known_changes = 0;                // as of order_changes()
    uint16_t group = 1;                        // that is being made up
    bool fenced = false;
    int begun = 0;  // products, in all
    EmuSite site{};
    const void* pc = nullptr;
};

void combine_warpgroup(unsigned lanes, Exchange& exchange);
void combine_pending(unsigned lanes, Exchange& exchange);

}  // namespace emu
