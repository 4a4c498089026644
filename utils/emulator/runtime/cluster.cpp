// Turns of a cluster's blocks, their common barrier, and who is who.
#include "cluster.h"

#include "../include/emulator/errors.h"
#include "../include/emulator/hopper.h"
#include "block.h"
#include "watch.h"

namespace emu {

int Cluster::live() const {
    int sum = 0;
    for (int i = 0; i < int(blocks.size()); ++i)
        sum += i < started ? blocks[size_t(i)]->live() : blocks[0]->launch->threads;
    return sum;
}

void Cluster::settle() {
    if (!arrived || arrived != live()) return;
    arrived = 0;
    for (Core* core : blocks) core->wake(Waits::kCluster, this);
}

void run_cluster(Launch& launch, const std::vector<Core*>& cores,
                 const std::vector<uint64_t>& blocks) {
    Cluster cluster;
    cluster.blocks = cores;
    for (size_t i = 0; i < cores.size() && !launch.error; ++i) {
        ++cluster.started;
        cores[i]->start(launch, blocks[i], &cluster);
    }
    for (;;) {
        bool moved = false;
        Core* waiting = nullptr;
        for (Core* core : cores) {
            if (launch.error) return;
            if (!core->live()) continue;
            waiting = core;
            moved |= core->resume();
        }
        if (!waiting || launch.error) return;
        if (!moved) return waiting->deadlock();
    }
}

void Core::cluster_sync(EmuSite site) {
    if (!cluster_) return void(barrier(EMU_BARRIER_PLAIN, 0, site));
    ++cluster_->arrived;
    if (cluster_->arrived != cluster_->live()) return block_on(Waits::kCluster, cluster_, site);
    cluster_->settle();
    if (!watching()) return;
    watch_warp_end();
    watch_phase();
    watch_thread(this, current_index());
}

int Core::cluster_rank() const {
    if (!cluster_) return 0;
    int rank = 0;
    while (cluster_->blocks[size_t(rank)] != this) ++rank;
    return rank;
}

Core& Core::peer(int rank, EmuSite site) {
    const int size = cluster_ ? int(cluster_->blocks.size()) : 1;
    if (rank < 0 || rank >= size)
        fail(cudaErrorLaunchFailure, hazard::invalid_rank, site, current->pc,
             "the cluster has %d block%s, and none of rank %d", size, size == 1 ? "" : "s", rank);
    if (!cluster_) return *this;
    Core& core = *cluster_->blocks[size_t(rank)];
    if (rank >= cluster_->started || !core.live())
        fail(cudaErrorLaunchFailure, hazard::invalid_rank, site, current->pc,
             "the block of rank %d %s: cluster_sync() keeps blocks together", rank,
             rank >= cluster_->started ? "need not have begun" : "may have ended");
    return core;
}

}  // namespace emu

using emu::core;

extern "C" void emu_cluster_sync(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    core()->cluster_sync(site);
}
extern "C" int emu_cluster_rank() { return core()->cluster_rank(); }
