// The states of spinning threads, as hashes.
#include "spins.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "../include/emulator/errors.h"
#include "block.h"
#include "device.h"
#include "pool.h"
#include "report.h"
#include "watch.h"

namespace emu {
namespace {

constexpr uint32_t kOften = 16;      // states in a row that are not new
constexpr size_t kMostStates = 512;  // of a thread; then all is forgotten
constexpr double kSeconds = 3;       // in plain runs, where a store goes unseen

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

uint64_t state(const Core& core, int thread) {
    const Fibre& f = core.fibre(thread);
    const char* const end = core.stacks.end(thread);
    uint64_t hash = f.registers;
    for (const char* from = f.stack; from + 8 <= end; from += 8) {
        hash ^= *reinterpret_cast<const uint64_t*>(from);
        hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
    }
    return hash;
}

}  // namespace

bool Spins::comes_back(const Core& core, int thread, Circle& circle) {
    if (!core.fibre(thread).stack) return false;
    const uint64_t hash = state(core, thread);
    auto at = std::lower_bound(circle.seen.begin(), circle.seen.end(), hash);
    if (at != circle.seen.end() && *at == hash) return ++circle.old >= kOften;
    circle.old = 0;
    if (circle.seen.size() >= kMostStates) circle.seen.clear(), at = circle.seen.begin();
    circle.seen.insert(at, hash);
    return false;
}

bool Spins::over(const std::vector<Core*>& blocks) {
    bool all = true;
    any_ = repeat_ = false;
    bool some = false;
    for (const Core* core : blocks) {
        for (int i = 0; i < core->launch->threads; ++i) {
            if (!core->is_live(i) || !core->spins(i)) continue;
            Circle& circle = circles_[&core->fibre(i)];
            if (circle.block != core->block_number()) circle = Circle{core->block_number(), {}, 0};
            some = true;
            all &= comes_back(*core, i, circle);
            repeat_ |= circle.old != 0;
            any_ |= circle.old != 0 || circle.seen.size() < kOften;
        }
    }
    all &= some;
    if (watching()) return all && watch_still();
    if (!all) since_ = 0;
    else if (!since_) since_ = now();
    return all && now() - since_ > kSeconds;
}

void Spins::restart() {
    circles_.clear();
    since_ = 0;
}

void report_spin(const std::vector<Core*>& blocks) {
    const Core& core = **std::min_element(blocks.begin(), blocks.end(), [](auto* a, auto* b) {
        return std::pair(!a->rests(), a->block_number()) <
               std::pair(!b->rests(), b->block_number());
    });
    const Launch& launch = *core.launch;
    int first = 0, count = 0;
    for (int i = launch.threads; i--;)
        if (core.is_live(i) && core.spins(i)) first = i, ++count;
    const Fibre& f = core.fibre(first);
    const uint64_t begun =
        launch.cooperative ? launch.blocks : std::min<uint64_t>(launch.next, launch.blocks);
    char text[400], rest[240] = "";
    if (begun < launch.blocks)
        snprintf(
            rest, sizeof rest,
            ". %llu of the launch's %llu blocks have begun: %d multiprocessors hold no more at "
            "once, and the others begin when one of these ends",
            (unsigned long long)begun, (unsigned long long)launch.blocks,
            std::max(multiprocessors(), kMostMultiprocessors));
    snprintf(text, sizeof text,
             "%d thread%s of this block spin%s here or nearby, and no thread of the launch will "
             "change what %s for%s",
             count, count == 1 ? "" : "s", count == 1 ? "s" : "",
             count == 1 ? "it waits" : "they wait", rest);
    // Its `site` is that of the last barrier that it came to, long before.
    report(hazard::deadlock_of_spins,
           Where{launch.kernel, core.block, f.index, f.pc ? EmuSite{} : f.site, f.pc}, text);
    int none = 0;
    core.launch->error.compare_exchange_strong(none, cudaErrorLaunchFailure);
}

}  // namespace emu
