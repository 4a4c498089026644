// What a block has under way beside its threads, and what counts it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "memory_barriers.h"
#include "register_pool.h"
#include "tensor_cores.h"
#include "thread_copies.h"
#include "tile_stores.h"
#include "warp_products.h"

namespace emu {

struct BlockWork {
    explicit BlockWork(int threads)
        : products(size_t(threads + 31) / 32), registers(threads), threads_(size_t(threads)) {}
    std::map<const void*, MemoryBarrier> barriers;
    std::map<int, NamedBarrier> named;
    std::unique_ptr<Batches> batches;    // of its threads, where there are any
    std::vector<WarpProducts> products;  // by warp
    RegisterPool registers;

    // Made for all threads once one of them asks: most blocks have neither.
    ThreadCopies& copies_of(int thread) {
        if (copies_.empty()) copies_.resize(threads_);
        return copies_[size_t(thread)];
    }
    TileStores& stores_of(int thread) {
        if (stores_.empty()) stores_.resize(threads_);
        return stores_[size_t(thread)];
    }
    std::vector<TileStores>& stores() { return stores_; }  // by thread; empty: none so far

   private:
    size_t threads_;
    std::vector<ThreadCopies> copies_;
    std::vector<TileStores> stores_;
};

bool advance_barriers(class Core& core);  // nobody can go on: lets tiles land, if somebody waits
void end_work(class Core& core);          // the block's last thread has left
void begin_incoming(class Core& core);    // tiles that other blocks send, from here on
void end_stores(class Core& core);
void end_products(class Core& core);
void end_registers(class Core& core);

}  // namespace emu
