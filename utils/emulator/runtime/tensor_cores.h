// What the lanes of a warp do with a tensor core together: combinations of kCollectives, of which
// each lane brings the address of a structure.
#pragma once

#include <cstdint>

namespace emu {

struct Product {  // what a lane brings to mma
    int type;
    float* d;
    uint32_t a[4], b[2];
};

struct Batch {  // of products of one thread, that its warp has not met for
    static constexpr int kMost = 16;
    int count = 0;
    Product products[kMost];
};

struct Exchange;

void combine_matrices(unsigned lanes, Exchange& exchange);
void combine_products(unsigned lanes, Exchange& exchange);
void combine_batches(unsigned lanes, Exchange& exchange);

}  // namespace emu
