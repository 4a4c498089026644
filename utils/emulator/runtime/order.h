// What a thread knows to be over, of what other parties of its block do: it has waited for a
// barrier in memory that they arrived at, or for a copy, or met somebody who had.
//
// Parties are the block's threads, and whoever works on for one that does not wait: copies, stores
// and products of tiles. Each counts its own moments. A party's clock holds of every party the last
// moment that is over for it. Between two block barriers; these order everything.
#pragma once

#include <cstdint>
#include <vector>

#include "shadow.h"

namespace emu {

// Ids: threads from 1, then the products of each warp, then those that get theirs when they begin.
constexpr uint16_t kProducts = 1025, kOthers = 1057;
constexpr int kMostParties = 4096;
inline bool is_thread(uint16_t id) { return id < kProducts; }

struct Clock {
    std::vector<uint16_t> moments;  // by id - 1; what is beyond its end is 0
    void join(const uint16_t* known, int parties);
    void join(const Clock& other) { join(other.moments.data(), int(other.moments.size())); }
    void note(uint16_t id, uint16_t moment);
    bool holds(uint16_t id, uint16_t moment) const {
        return id <= moments.size() && moments[id - 1u] >= moment;
    }
};

void order_block(uint32_t serial);  // a block begins, or goes on
void order_block_end(uint32_t serial);
int order_parties();                   // with an id, of the running block
uint32_t order_epoch();                // clocks of another one say nothing
void order_phase();                    // its threads have passed a barrier
uint32_t order_changes();              // so often somebody has learned something, or forgotten
const uint16_t* known_to(int thread);  // null: nothing
void learn(int thread, const Clock& clock);  // what it holds is over for the thread
void learn(int thread, uint16_t id, uint16_t moment);
void share(int warp, uint32_t lanes);  // they have met
// What is over for the running thread, its own doings too. `clock`: of its warp's lanes, or null.
Clock knowledge(const Accessor& me);
void add_own(Clock& clock, const Accessor& me);  // without what it has learned from a barrier

enum class Does : uint8_t { kCopies, kStores };
uint16_t party_of(Does what, int thread);  // a party of the thread's own
uint16_t next_party(uint16_t* moment);     // one for a single operation

}  // namespace emu
