// Which block begins when. CUDA promises no order. A card begins those with low numbers first, and
// among the first that its multiprocessors hold nobody knows one.
#include "block_order.h"

#include <algorithm>
#include <numeric>

#include "block.h"
#include "device.h"

namespace emu {
namespace {

// As many begin in another order as an H100 has room for, however large they are: so blocks that
// wait for lower numbers meet all of those sooner or later.
constexpr uint64_t kTogether = kMostMultiprocessors;

unsigned seed = 0;  // of the order; 0: ascending

// A permutation of the numbers below n, by which 0 is not the first, and n - 1 is not the last.
uint64_t permuted(uint64_t k, uint64_t n) {
    if (n == 1) return k;
    const uint64_t mixed = seed * 0x9e3779b97f4a7c15ull;
    uint64_t step = 1 + (mixed >> 40) % (n - 1), shift = 1 + (mixed >> 20) % (n - 1);
    while (std::gcd(step, n) != 1) --step;
    if (shift + 1 == step) shift = step;  // the last one would end up with n - 1
    return (k * step + shift) % n;
}

}  // namespace

uint64_t block_at(const Launch& launch, uint64_t place) {
    if (!seed) return place;
    const uint64_t first = place / kTogether * kTogether;
    return first + permuted(place - first, std::min(kTogether, launch.blocks - first));
}

}  // namespace emu

// 0: blocks begin in ascending order. Any other number: in an order that it determines.
extern "C" void emu_set_block_order(unsigned seed) { emu::seed = seed; }
