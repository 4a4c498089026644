// What the kernels themselves did to each allocation over a whole watched run, whichever way values
// came about: which bytes they read, and of which bytes they were the last to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shadow.h"

namespace emu {

struct Allocation;

struct Coverage {
    std::vector<uint64_t> read, written;  // a bit for each byte
    bool kernel_wrote = false, host_wrote = false;

    void note(size_t offset, size_t size, Kind kind) {
        if (reads(kind)) set(read, offset, size);
        if (!writes(kind)) return;
        set(written, offset, size);
        kernel_wrote = true;
    }
    static void set(std::vector<uint64_t>& bits, size_t offset, size_t size);
};

Coverage& coverage_of(const Allocation& a);

void cover_host_write(const void* first, size_t bytes);  // by the launcher's call of CUDA
void cover_to_host();                                    // values have come to the host
void cover_launch();
// By the launcher, between device memories. Of several pieces, how long each is.
void cover_copy(const void* to, const void* from, size_t bytes);
void follow_values(bool on);  // note that where nothing else is watched, from now on or no longer
void forget_coverage();

}  // namespace emu
