// Launches: refuses a configuration that a GPU would refuse, and takes the others through the
// launch. Which core runs which block is pool.cpp's business, what a block does block.cpp's.
#include <mutex>

#include "../include/emulator/errors.h"
#include "block.h"
#include "device.h"
#include "faults.h"
#include "pool.h"
#include "report.h"
#include "trace.h"
#include "watch.h"

namespace emu {
namespace {

// CUDA 13 calls all of these an invalid value (seen with 13.0 on an H200); before, the ones about
// threads and blocks were cudaErrorInvalidConfiguration.
bool is_valid(const Launch& launch, uint64_t threads) {
    const dim3 &grid = launch.grid, &block = launch.block;
    return threads && threads <= kMaxThreads && block.x <= 1024 && block.y <= 1024 &&
           block.z <= 64 && launch.blocks && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
           grid.z <= 65535 && launch.shared <= dynamic_shared_limit();
}

void tell_refused(const Launch& launch) {
    Json event;
    event.text("event", "refused");
    event.text("kernel", launch.kernel);
    event.position("grid", {launch.grid.x, launch.grid.y, launch.grid.z});
    event.position("block", {launch.block.x, launch.block.y, launch.block.z});
    event.number("shared", launch.shared);
    event.number("shared_limit", dynamic_shared_limit());
    event.end();
}

// One launch at a time: what is known of one is not kept apart from another's.
std::recursive_mutex launching;
thread_local bool cooperates = false;
bool rehearsing = false;
uint64_t rehearsed = 0;  // threads

}  // namespace
}  // namespace emu

// From now on a launch is held against the device's limits, and does not run; its threads are
// counted.
extern "C" void emu_rehearse(int on) {
    emu::rehearsing = on;
    emu::rehearsed = 0;
}
extern "C" uint64_t emu_rehearsed() { return emu::rehearsed; }

extern "C" void emu_launch(const dim3* grid, const dim3* block, size_t shared, cudaStream_t,
                           const char* kernel, void (*body)(void*), void* argument, EmuSite site) {
    using namespace emu;
    if (Core* running = core(); running && running->current)
        running->fail(cudaErrorNotSupported, "not-supported", site, nullptr,
                      "a kernel launched from a kernel; the emulator has no dynamic parallelism");
    std::lock_guard<std::recursive_mutex> lock(launching);
    const bool cooperative = cooperates;
    cooperates = false;
    if (device_lost()) return;  // after a fault nothing runs any more, as on a GPU
    const uint64_t threads = uint64_t(block->x) * block->y * block->z;
    const uint64_t blocks = uint64_t(grid->x) * grid->y * grid->z;
    Launch launch{*grid, *block, shared, kernel, body, argument, int(threads), blocks};
    launch.cooperative = cooperative;
    if (!is_valid(launch, threads)) {
        tell_refused(launch);
        return set_error(cudaErrorInvalidValue);
    }
    if (cooperative && blocks > resident_grid(launch.threads, shared))
        return set_error(cudaErrorCooperativeLaunchTooLarge);

    if (rehearsing) {
        rehearsed += blocks * threads;
        return;
    }
    install_fault_handlers();
    trace_launch(launch);
    watch_launch(launch);
    run_blocks(launch);
    watch_launch_end(launch);
    if (int error = launch.error) set_error(cudaError_t(error));
}
extern "C" void emu_cooperate() { emu::cooperates = true; }
extern "C" void emu_begin_launch() { emu::launching.lock(); }
extern "C" void emu_end_launch() { emu::launching.unlock(); }
