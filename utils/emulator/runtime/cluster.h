// The blocks of a cluster, which run together: each on a core of its own, in turns on one OS
// thread. A block goes on until none of its threads can.
//
// While watched, the end of a turn is as a barrier of the block: it may hide what threads did too
// early to each other, and never makes anything up. What copies have under way stays known.
#pragma once

#include <cstdint>
#include <vector>

namespace emu {

class Core;
struct Launch;

struct Cluster {
    std::vector<Core*> blocks;  // by rank
    int started = 0;            // of them
    int arrived = 0;            // threads, at the cluster's barrier

    int live() const;  // threads that have not left the kernel
    void settle();     // lets all go on, if all have arrived
};

// Of blocks with these numbers, each on its core.
void run_cluster(Launch& launch, const std::vector<Core*>& cores,
                 const std::vector<uint64_t>& blocks);

}  // namespace emu
