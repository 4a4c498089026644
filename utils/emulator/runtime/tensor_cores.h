// What the lanes of a warp do with a tensor core together: combinations of kCollectives, of which
// each lane brings the address of a structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace emu {

struct alignas(32) Operands {  // a lane's share of a product
    uint32_t a[4], b[2];
    float* d;
};
struct Product {  // what a lane brings to mma
    int type;
    Operands share;
};

// Products of one thread that its warp has not met for, all of one type. Those of a warp's lanes
// lie side by side: whoever combines them reads them in a row.
struct Batch {
    static constexpr int kMost = 16;
    int type = 0, count = 0;
    Operands* first = nullptr;
    Operands& share(int i) const { return first[32 * i]; }
};
class Batches {
   public:
    explicit Batches(size_t threads)
        : shares_(new Operands[(threads + 31) / 32 * 32 * Batch::kMost]), of_threads_(threads) {
        for (size_t i = 0; i < threads; ++i)
            of_threads_[i].first = &shares_[i / 32 * 32 * Batch::kMost + i % 32];
    }
    Batch& of(size_t thread) { return of_threads_[thread]; }

   private:
    std::unique_ptr<Operands[]> shares_;
    std::vector<Batch> of_threads_;
};

struct Exchange;

void combine_matrices(unsigned lanes, Exchange& exchange);
void combine_products(unsigned lanes, Exchange& exchange);
void combine_batches(unsigned lanes, Exchange& exchange);

}  // namespace emu
