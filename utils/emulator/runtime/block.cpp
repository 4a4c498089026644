// The scheduler of a block: starts its fibres, switches between them, and lets them meet at
// barriers.
#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "../include/emulator/errors.h"
#include "block_work.h"
#include "cluster.h"
#include "pool.h"
#include "report.h"
#include "waits.h"
#include "watch.h"

// Defined here, read by every kernel.
__thread uint3 threadIdx EMU_TLS;
__thread uint3 blockIdx EMU_TLS;
__thread dim3 blockDim EMU_TLS;
__thread dim3 gridDim EMU_TLS;

namespace emu {

__thread Core* this_core EMU_TLS = nullptr;

static unsigned order_seed = 0;  // of the order in which threads run; 0: ascending

Core::Core(int most_threads, bool guarded)
    : stacks(most_threads, guarded), fibres_(size_t(most_threads)) {}
Core::~Core() = default;

static void enter_thread(void* c) {
    Core* core = static_cast<Core*>(c);
    core->launch->body(core->launch->argument);
    core->finish();
}

void Core::become_current() {
    take_seat(this);
    blockDim = launch->block;
    gridDim = launch->grid;
}

bool Core::start(Launch& l, uint64_t number, Cluster* cluster) {
    launch = &l;
    cluster_ = cluster;
    lost_ = false;
    become_current();
    return run_block(number);
}

// The whole grid has come to its barrier.
bool Core::go_on() {
    become_current();
    blockIdx = block;
    watch_block_again(serial);
    if (watching() && at_grid_) check_barrier();
    at_grid_ = 0;
    for (int w = 0; w < warp_count_; ++w) warps_[w].runnable = warps_[w].live;
    int first = 0;
    for (int i = launch->threads; i--;) {
        fibres_[size_t(i)].waits = Waits::kNothing;
        if (is_live(i)) first = i;
    }
    make_current(&fibres_[size_t(first)]);
    return run_fibres();
}

bool Core::go_on_from_rest(bool alone) {
    become_current();
    blockIdx = block;
    if (!alone) watch_block_again(serial);
    resting_ = false;
    int first = 0;
    while (!is_live(first)) ++first;
    current = &fibres_[size_t(first)];
    for (int w = 0; w < warp_count_; ++w) {
        warps_[w].runnable |= warps_[w].paused;
        warps_[w].paused = warps_[w].spinning = 0;
    }
    make_current(first_runnable(0, false));
    return run_fibres();
}

bool Core::resume() {
    become_current();
    blockIdx = block;
    watch_block_again(serial);
    int first = 0;
    while (!is_live(first)) ++first;
    make_current(&fibres_[size_t(first)]);
    if (work_) begin_incoming(*this);
    if (Fibre* to = lost_ ? current : next()) {
        make_current(to);
        run_fibres();
        return true;
    }
    watch_thread(nullptr, 0);
    current = nullptr;
    return false;
}

void Core::deadlock() {
    lost_ = true;
    resume();
}

void Core::lose() {
    become_current();
    int first = 0;
    while (!is_live(first)) ++first;
    const Fibre& f = fibres_[size_t(first)];
    report(hazard::deadlock, Where{launch->kernel, block, f.index, f.site, f.pc},
           "waits for the whole grid, and other blocks have ended without coming");
    int none = 0;
    launch->error.compare_exchange_strong(none, cudaErrorLaunchFailure);
}

bool Core::run_block(uint64_t number) {
    const dim3 grid = launch->grid;
    block = uint3{unsigned(number % grid.x), unsigned(number / grid.x % grid.y),
                  unsigned(number / grid.x / grid.y)};
    blockIdx = block;
    block_number_ = uint32_t(number);
    random_ = order_seed * 2654435761u + block_number_ * 40503u + 1;
    if (!random_) random_ = 1;
    shared.begin_block(launch->shared);
    watch_block();
    serial = watch_serial();
    resting_ = false;
    fences_ = 0;
    prepare_fibres();
    make_current(&fibres_[order_seed ? size_t(random() % unsigned(launch->threads)) : 0]);
    return run_fibres();
}

Where& left_at() {
    static thread_local Where where;
    return where;
}

bool Core::run_fibres() {
    emu_switch(&scheduler_, current->context);
    watch_warp_end();
    watch_thread(nullptr, 0);
    left_at() = Where{launch->kernel, block, current->index, {nullptr, 0}, current->pc};
    current = nullptr;  // the block has ended, has been abandoned, or waits for the grid
    if (!live_ || launch->error.load(std::memory_order_relaxed)) watch_block_end(serial);
    if (shared.static_bytes() > launch->static_shared)  // rarely: the cores share this line
        launch->static_shared = shared.static_bytes();
    return (at_grid_ || resting_) && !launch->error.load(std::memory_order_relaxed);
}

void Core::prepare_fibres() {
    const dim3 shape = launch->block;
    uint3 thread{};
    for (int i = 0; i < launch->threads; ++i) {
        Fibre& f = fibres_[size_t(i)];
        f.context = make_context(stacks.top(i), enter_thread, this);
        f.index = thread;
        f.waits = Waits::kNothing;
        f.site = EmuSite{};
        f.pc = nullptr;
        f.returned = false;
        f.batch = nullptr;
        f.phase = 0;
        f.failures = 0;
        f.stack = nullptr;
        f.frames.clear();
        if (++thread.x == shape.x) {
            thread.x = 0;
            if (++thread.y == shape.y) thread.y = 0, ++thread.z;
        }
    }
    if (watching()) polls_.assign(size_t(launch->threads), Polls{});
    live_ = launch->threads;
    at_barrier_ = counted_ = at_grid_ = passes_ = 0;
    if (!teams_.empty()) teams_.clear();
    work_.reset();
    ended_ = -1;
    warp_count_ = (live_ + 31) / 32;
    for (int w = 0; w < warp_count_; ++w) {
        int lanes = live_ - 32 * w;
        unsigned mask = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        warps_[w] = Warp{mask, mask, 0, 0, 0};
        meetings_[w] = Meeting{};
    }
}

// The next thread to run: lanes of the running warp first, so that collectives complete early.
Fibre* Core::next() {
    const int i = index(current), home = i / 32;
    const unsigned later = warps_[home].runnable & ~((2u << i % 32) - 1);
    if (later && !order_seed) return &fibres_[size_t(32 * home + __builtin_ctz(later))];  // mostly
    Fibre* to = first_runnable(home, false);
    if (!to && work_ && advance_barriers(*this)) to = first_runnable(home, false);
    // Threads that were paused go on when nobody else can, another warp's first; if all of them
    // spin, in another block, since what they wait for may be done there.
    if (to) return to;
    unsigned paused = 0, only_paused = 0;
    for (int w = 0; w < warp_count_; ++w) {
        paused |= warps_[w].paused;
        only_paused |= warps_[w].paused & ~warps_[w].spinning;
    }
    // A watched block has some more passes: behind a rest, less is known of its order.
    const bool stays = watching() && ++passes_ < kPasses * warp_count_;
    if (!paused || only_paused || cluster_ || stays) return first_runnable(home + 1, true);
    passes_ = 0;
    resting_ = true;
    return nullptr;
}

unsigned Core::random() {  // xorshift
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    return random_ ^= random_ << 5;
}

// One of the lanes: the first, or any where the order is permuted.
int Core::pick(unsigned lanes) {
    if (order_seed)
        for (unsigned k = random() % unsigned(__builtin_popcount(lanes)); k; --k)
            lanes &= lanes - 1;
    return __builtin_ctz(lanes);
}

Fibre* Core::first_runnable(int from, bool resume) {
    int here = index(current);
    if (order_seed) from = int(random() % unsigned(warp_count_)), here = -32;
    for (int k = 0; k < warp_count_; ++k) {
        int w = (from + k) % warp_count_;
        Warp& warp = warps_[w];
        if (resume && warp.paused) {
            warp.runnable |= warp.paused;
            warp.paused = warp.spinning = 0;
        }
        if (!warp.runnable) settle_active_mask(w);
        if (!warp.runnable) continue;
        unsigned later = w == here / 32 && !resume ? warp.runnable & ~((2u << here % 32) - 1) : 0;
        return &fibres_[size_t(32 * w + pick(later ? later : warp.runnable))];
    }
    return nullptr;
}

void Core::note_fence() {
    if (++fences_ != 2 || cluster_ || launch->cooperative || launch->blocks == 1) return;
    if (watching() || launch->resting >= most_at_fences(launch->threads)) return;
    launch->fences = true;
    const int i = current_index();
    warps_[i / 32].runnable &= ~(1u << i % 32);
    warps_[i / 32].paused |= 1u << i % 32;
    resting_ = true;
    emu_switch(&current->context, scheduler_);
}

void Core::pause(bool spins) {
    Fibre* self = current;
    const int i = index(self);
    const unsigned bit = 1u << i % 32;
    self->failures = 0;
    if (spins && !self->stack && launch->in_doubt) note_state();
    warps_[i / 32].runnable &= ~bit;
    warps_[i / 32].paused |= bit;
    if (spins) warps_[i / 32].spinning |= bit;
    yield();
    self->stack = nullptr;
}

void Core::switch_to(Fibre* to) {
    Fibre* self = current;
    if (to == self) return;
    if (index(self) / 32 != index(to) / 32) watch_warp_end();
    make_current(to);
    emu_switch(&self->context, to->context);
}

void Core::make_current(Fibre* fibre) {
    current = fibre;
    threadIdx = fibre->index;
    if (watching()) watch_thread(this, index(fibre));
}

// Leaves the running fibre, which cannot go on, for one that can.
void Core::yield() {
    Fibre* const self = current;
    const int i = index(self);
    const unsigned later = warps_[i / 32].runnable & ~((2u << i % 32) - 1);
    if (later && !order_seed) {  // mostly: the next lane of the warp
        make_current(self + (__builtin_ctz(later) - i % 32));
        emu_switch(&self->context, current->context);
    } else if (Fibre* to = next()) switch_to(to);
    else if (at_grid_ == live_ || resting_ || (cluster_ && !lost_))
        emu_switch(&current->context, scheduler_);
    else report_deadlock(*this);
    if (lost_) report_deadlock(*this);
}

void Core::finish() {
    int i = index(current);
    Warp& warp = warps_[i / 32];
    warp.live &= ~(1u << i % 32);
    warp.runnable &= ~(1u << i % 32);
    --live_;
    passes_ = 0;
    if (!current->returned && ended_ < 0) {
        ended_ = i;
        current->site = EmuSite{};  // it waits nowhere
    }
    if (live_ && at_barrier_ == live_) release_barrier();
    if (warp.waiting) settle(i / 32);
    if (!live_ && work_) end_work(*this);
    Fibre* to = live_ ? next() : nullptr;
    if (cluster_) cluster_->settle();
    if (live_ && !to && at_grid_ != live_ && !cluster_ && !resting_) report_deadlock(*this);
    void* unused;
    if (!to || index(to) / 32 != i / 32) watch_warp_end();
    if (to) make_current(to);
    emu_switch(&unused, to ? to->context : scheduler_);
    __builtin_unreachable();
}

void Core::abandon(int error) {
    int none = 0;
    launch->error.compare_exchange_strong(none, error);
    void* unused;
    emu_switch(&unused, scheduler_);
    __builtin_unreachable();
}

void Core::fail(int error, const HazardKind& kind, EmuSite site, const void* pc,
                const char* message, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, message);
    vsnprintf(text, sizeof text, message, arguments);
    va_end(arguments);
    report(kind, Where{launch->kernel, block, current->index, site, pc}, text);
    abandon(error);
}

void Core::grid_barrier(EmuSite site) {
    if (!launch->cooperative)
        fail(cudaErrorLaunchFailure, hazard::grid_barrier, site, current->pc,
             "waits for the whole grid, and the kernel was not launched by "
             "cudaLaunchCooperativeKernel");
    Fibre* self = current;
    const int i = index(self);
    ++at_grid_;
    self->waits = Waits::kGrid;
    self->site = site;
    warps_[i / 32].runnable &= ~(1u << i % 32);
    yield();
    ++self->phase;
}

int Core::barrier(int kind, int predicate, EmuSite site) {
    Fibre* self = current;
    int i = index(self);
    counted_ += predicate != 0;
    ++at_barrier_;
    self->waits = Waits::kBarrier;
    self->kind = kind;
    self->site = site;
    warps_[i / 32].runnable &= ~(1u << i % 32);
    if (at_barrier_ == live_) {
        release_barrier();
        // Threads go on in ascending order, as a reader of their output expects.
        int w = order_seed ? int(random() % unsigned(warp_count_)) : 0;
        while (!warps_[w].live) w = (w + 1) % warp_count_;
        watch_thread(this, i);  // should it be this one: the phase is new
        switch_to(&fibres_[size_t(32 * w + pick(warps_[w].live))]);
    } else {
        yield();
    }
    ++self->phase;
    return count_result_;
}

// In a watched run: everybody should have come to the same barrier. Who has returned before is
// excused, but not who went on to the kernel's end: a barrier in a branch, or in a shorter loop.
void Core::check_barrier() const {
    int first = -1;
    for (int i = 0; i < launch->threads; ++i) {
        if (!is_live(i)) continue;
        if (first < 0) first = i;
        const EmuSite &a = fibres_[size_t(first)].site, &b = fibres_[size_t(i)].site;
        if (a.line != b.line || strcmp(a.file, b.file)) {
            watch_site(*this, hazard::divergent_barrier, i, first);
            return;
        }
    }
    if (ended_ >= 0) watch_site(*this, hazard::divergent_barrier, first, ended_);
}

void Core::release_barrier() {
    if (watching()) {
        check_barrier();
        watch_warp_end();
        watch_phase();
    }
    for (int w = 0; w < warp_count_; ++w) warps_[w].runnable = warps_[w].live;
    at_barrier_ = passes_ = 0;
    count_result_ = counted_;  // nobody can reach the next barrier's release before reading it
    counted_ = 0;
    for (int i = 0; i < launch->threads; ++i) fibres_[size_t(i)].waits = Waits::kNothing;
}

BlockWork& Core::work() {
    if (!work_) work_ = std::make_unique<BlockWork>(launch->threads);
    return *work_;
}

void Core::block_on(Waits what, const void* barrier, EmuSite site) {
    Fibre* self = current;
    self->waits = what;
    self->barrier = barrier;
    self->site = site;
    const int i = index(self);
    warps_[i / 32].runnable &= ~(1u << i % 32);
    yield();
}

void Core::wake(Waits what, const void* barrier) {
    for (int i = 0; i < launch->threads; ++i) {
        Fibre& f = fibres_[size_t(i)];
        if (!is_live(i) || f.waits != what || f.barrier != barrier) continue;
        f.waits = Waits::kNothing;
        warps_[i / 32].runnable |= 1u << i % 32;
    }
}

void* Core::shared_array(EmuSharedKey* key) {
    if (void* array = shared.array(key)) return array;
    fail(cudaErrorInvalidValue, hazard::too_much_shared, key->site, nullptr,
         "'%s' brings static shared memory to %zu bytes, and %zu is all there is; nvcc would not "
         "compile this: ask for dynamic shared memory",
         key->name, shared.static_bytes_with(*key), kStaticShared);
}

}  // namespace emu

using emu::core;

extern "C" int emu_barrier(int kind, int predicate, EmuSite site) {
    core()->current->pc = EMU_CALLER;
    return core()->barrier(kind, predicate, site);
}
extern "C" void emu_grid_barrier(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    core()->grid_barrier(site);
}
extern "C" void emu_pause() {
    emu::Core* c = core();
    if (!c || !c->current) return;
    c->current->pc = EMU_CALLER;
    c->pause(true);
}
extern "C" void emu_fenced() {
    emu::Core* c = core();
    if (!c || !c->current) return;
    c->current->pc = EMU_CALLER;
    c->note_fence();
}
// A thread of the block may hold what the running one waits for.
extern "C" void emu_cas_failed() {
    constexpr uint32_t kPatience = 64;
    emu::Core* c = core();
    if (!c || !c->current || ++c->current->failures <= kPatience) return;
    c->current->pc = EMU_CALLER;
    c->pause(true);
}
extern "C" unsigned emu_thread() { return unsigned(core()->current_index()); }
extern "C" void* emu_shared(EmuSharedKey* key) { return core()->shared_array(key); }
extern "C" void* emu_dynamic_shared(const char* name, size_t element) {
    return core()->shared.dynamic_array(name, element);
}
extern "C" void emu_note_return() {
    if (emu::Core* c = core(); c && c->current) c->current->returned = true;
}
// 0: threads run in ascending order. Any other number: in an order that it determines.
extern "C" void emu_set_order(unsigned seed) { emu::order_seed = seed; }
