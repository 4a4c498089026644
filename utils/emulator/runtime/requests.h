// What a warp's access costs: 32-byte sectors of global memory, banks of shared memory.
//
// The lanes of a warp run one after the other here, so the k-th execution of an instruction by one
// lane is taken to be one request with the k-th by the others. Where trip counts differ between
// lanes that is an approximation. The definitions are Nsight Compute's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emu {

struct Totals {             // of one instruction in a launch
    uint64_t requests = 0;  // executions by a warp
    uint64_t lanes = 0;     // executions by a thread
    uint64_t bytes = 0;     // asked for by the threads
    uint64_t sectors = 0;   // global: moved
    uint64_t ideal =
        0;  // global: sectors that the distinct bytes would fill. shared: passes without conflict
    uint64_t passes = 0;  // shared: wavefronts
    uint64_t contended =
        0;  // atomics: executions that had to wait for another lane's at the same word
};

// Sectors touched by `n` accesses of `size` bytes, and the fewest that their distinct bytes need.
struct Sectors {
    unsigned touched, ideal;
};
Sectors count_sectors(const uint64_t* addresses, int n, unsigned size);

// Passes over the banks for `n` accesses by the lanes of `lanes` (address i is lane i's), and the
// passes that remain if no two words share a bank. 8-byte accesses go by half warps, 16-byte ones
// by quarters; lanes that read one word share it. Where every lane wants the same address as its
// neighbour, or as its neighbour but one, twice as many lanes run at a time.
struct Passes {
    unsigned actual, ideal;
};
Passes count_passes(const uint64_t* addresses, uint32_t lanes, unsigned size);

// Lanes beyond the first at each address.
unsigned count_contended(const uint64_t* addresses, int n);

struct Request {
    uint32_t lanes = 0;
    uint64_t address[32];
};

// The requests of one instruction that the running warp has not completed.
struct Pending {
    uint32_t count[32] = {};  // executions by each lane
    uint32_t used = 0;        // rows
    std::vector<Request> rows;

    // Notes the lane's next execution, and returns which it is.
    uint32_t add(unsigned lane, uint64_t address) {
        uint32_t row = count[lane]++;
        if (__builtin_expect(row >= used, 0)) grow(row);
        rows[row].lanes |= 1u << lane;
        rows[row].address[lane] = address;
        return row;
    }
    void clear() {
        used = 0;
        for (uint32_t& c : count) c = 0;
    }

   private:
    void grow(uint32_t row) {
        if (row >= rows.size()) rows.resize(row ? 2 * size_t(row) : 4);
        rows[row].lanes = 0;
        used = row + 1;
    }
};

}  // namespace emu
