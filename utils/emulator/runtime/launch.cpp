// Launches: refuses a configuration that a GPU would refuse, and takes the others through the
// launch. Which core runs which block is pool.cpp's business, what a block does block.cpp's.
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "../include/emulator/errors.h"
#include "block.h"
#include "coverage.h"
#include "device.h"
#include "faults.h"
#include "heap.h"
#include "pinned_copies.h"
#include "pool.h"
#include "report.h"
#include "streams.h"
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

// By where it is said: the kernel's name, and its clusters.
struct Declared {
    std::string kernel;
    dim3 blocks;
};
std::map<const void*, Declared>& declared() {
    static auto& all = *new std::map<const void*, Declared>;  // modules end late
    return all;
}

const void* module_of(const void* address) {
    Dl_info info{};
    return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

// What the module says of a kernel that it launches, such as "kernel" or "space::kernel<int>".
dim3 declared_cluster(const char* label, const void* body) {
    if (declared().empty()) return dim3();
    std::string name(label, strcspn(label, "<"));
    while (!name.empty() && name.back() == ' ') name.pop_back();
    if (const size_t space = name.rfind("::"); space != std::string::npos)
        name = name.substr(space + 2);
    for (auto& [place, said] : declared())
        if (said.kernel == name && module_of(place) == module_of(body)) return said.blocks;
    return dim3();
}

// At most 8 blocks, and the grid a multiple of them along each axis.
bool fits(const Launch& launch) {
    const dim3 &c = launch.cluster, &grid = launch.grid;
    const uint64_t size = uint64_t(c.x) * c.y * c.z;
    return size && size <= 8 && !(grid.x % c.x) && !(grid.y % c.y) && !(grid.z % c.z);
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
thread_local dim3 cluster;
bool rehearsing = false;
std::string rehearsed;  // a line for each launch: its blocks, threads of each, the kernel
constexpr size_t kRehearsed = 1 << 16;  // bytes of it, or a few more

}  // namespace
}  // namespace emu

// From now on a launch is held against the device's limits, and does not run; it is noted.
extern "C" void emu_rehearse(int on) {
    emu::rehearsing = emu::heap().rehearsed = on;
    emu::rehearsed.clear();
    emu::follow_values(on);
}
extern "C" const char* emu_rehearsed() { return emu::rehearsed.c_str(); }

extern "C" void emu_launch(const dim3* grid, const dim3* block, size_t shared, cudaStream_t stream,
                           const char* kernel, void (*body)(void*), void* argument, EmuSite site) {
    using namespace emu;
    if (Core* running = core(); running && running->current)
        running->fail(cudaErrorNotSupported, hazard::not_supported, site, nullptr,
                      "a kernel launched from a kernel; the emulator has no dynamic parallelism");
    std::lock_guard<std::recursive_mutex> lock(launching);
    const bool cooperative = cooperates;
    cooperates = false;
    dim3 together = std::exchange(cluster, dim3());
    if (together.x * together.y * together.z == 1)
        together = declared_cluster(kernel, (const void*)body);
    if (device_lost()) return;  // after a fault nothing runs any more, as on a GPU
    const uint64_t threads = uint64_t(block->x) * block->y * block->z;
    const uint64_t blocks = uint64_t(grid->x) * grid->y * grid->z;
    Launch launch{*grid, *block, shared, kernel, body, argument, int(threads), blocks};
    launch.cooperative = cooperative;
    launch.cluster = together;
    launch.code = code_around((const void*)body);
    if (!is_valid(launch, threads)) {
        tell_refused(launch);
        return set_error(cudaErrorInvalidValue);
    }
    if (!fits(launch)) return set_error(cudaErrorInvalidClusterSize);
    if (cooperative && blocks > resident_grid(launch.threads, shared))
        return set_error(cudaErrorCooperativeLaunchTooLarge);

    finish_copies();
    if (rehearsing) {
        cover_launch();
        if (rehearsed.size() < kRehearsed)
            rehearsed +=
                std::to_string(blocks) + ' ' + std::to_string(threads) + ' ' + kernel + '\n';
        return;
    }
    install_fault_handlers();
    OpenMemory open;
    trace_launch(launch);
    begin_launch_in(stream, kernel);
    watch_launch(launch);
    run_blocks(launch);
    pinned_memory_may_change();
    watch_launch_end(launch);
    if (int error = launch.error) set_error(cudaError_t(error));
}
extern "C" void emu_declare_cluster(const void* place, const char* kernel, dim3 blocks) {
    std::lock_guard<std::recursive_mutex> lock(emu::launching);
    if (kernel) emu::declared()[place] = {kernel, blocks};
    else emu::declared().erase(place);
}
extern "C" void emu_cluster(dim3 blocks) { emu::cluster = blocks; }
extern "C" void emu_cooperate() { emu::cooperates = true; }
extern "C" void emu_begin_launch() { emu::launching.lock(); }
extern "C" void emu_end_launch() { emu::launching.unlock(); }
