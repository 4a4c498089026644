// Registers that warps of a block give back and take: setmaxnreg.
#include "register_pool.h"

#include <algorithm>
#include <cstdio>

#include "../include/emulator/hopper.h"
#include "block.h"
#include "block_work.h"
#include "report.h"

namespace emu {

RegisterPool::RegisterPool(int threads)
    : each(std::min(256, kRegisters / threads / 8 * 8)), of_warp(size_t(threads + 31) / 32, each) {}

void end_registers(Core& core) {
    const RegisterPool& pool = core.work().registers;
    if (pool.left >= 0) return;
    char text[200];
    snprintf(text, sizeof text,
             "asks for %d registers a thread; %d threads began with %d each, and no other warp "
             "gives back as many",
             pool.asked, core.launch->threads, pool.each);
    report(hazard::deadlock_of_registers,
           Where{core.launch->kernel, core.block, pool.thread, pool.site, pool.pc}, text);
    core.abandon(cudaErrorLaunchTimeout);
}

}  // namespace emu

using namespace emu;

// The first lane of a warp to come takes them, or gives them back, for all. Who finds too few would
// wait for others to give some back; whether they do is known when the block has ended.
extern "C" void emu_set_registers(int count, EmuSite site) {
    Core& c = *core();
    RegisterPool& pool = c.work().registers;
    int& mine = pool.of_warp[size_t(c.current_index()) / 32];
    pool.left -= count - mine;
    if (count > mine && pool.left < 0) {
        pool.asked = count;
        pool.thread = c.current->index;
        pool.site = site;
        pool.pc = EMU_CALLER;
    }
    mine = count;
}
