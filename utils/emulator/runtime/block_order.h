// The order in which the blocks of a launch begin.
#pragma once

#include <cstdint>

namespace emu {

struct Launch;

// The number of the block that begins at a place: the same, unless emu_set_block_order has permuted
// it.
uint64_t block_at(const Launch& launch, uint64_t place);

}  // namespace emu
