// What the lanes of a warp do with a tensor core together: combinations of kCollectives, of which
// each lane brings the address of a structure.
#pragma once

namespace emu {

struct Exchange;

void combine_matrices(unsigned lanes, Exchange& exchange);
void combine_products(unsigned lanes, Exchange& exchange);

}  // namespace emu
