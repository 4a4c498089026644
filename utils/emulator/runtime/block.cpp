#include "block.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../include/emulator/api.h"
#include "report.h"
#include "waits.h"
#include "watch.h"

// Defined here, read by every kernel.
__thread uint3 threadIdx EMU_TLS;
__thread uint3 blockIdx EMU_TLS;
__thread dim3 blockDim EMU_TLS;
__thread dim3 gridDim EMU_TLS;

namespace emu {

unsigned order_seed = 0;

static const char* const kCollectiveNames[] = {
    "__syncwarp",        "__shfl_sync",       "__ballot_sync",     "__match_any_sync",
    "__match_all_sync",  "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
    "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",
    "__reduce_xor_sync", "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync"};

Core::Core() {
    void* range = mmap(nullptr, kSharedGap + kSharedSpan, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        perror("emulator: no address space for shared memory");
        abort();
    }
    shared_ = static_cast<char*>(range) + kSharedGap;
}

static void enter_thread(void* c) {
    Core* core = static_cast<Core*>(c);
    core->launch->body(core->launch->argument);
    core->finish();
}

void Core::run(Launch& l) {
    launch = &l;
    blockDim = l.block;
    gridDim = l.grid;
    for (;;) {
        uint64_t block = l.next.fetch_add(1, std::memory_order_relaxed);
        if (block >= l.blocks || l.error.load(std::memory_order_relaxed)) break;
        run_block(block);
    }
    launch = nullptr;
}

void Core::run_block(uint64_t number) {
    const dim3 grid = launch->grid, shape = launch->block;
    block = uint3{unsigned(number % grid.x), unsigned(number / grid.x % grid.y),
                  unsigned(number / grid.x / grid.y)};
    blockIdx = block;
    block_number_ = uint32_t(number);
    ++block_serial_;
    random_ = order_seed * 2654435761u + block_number_ * 40503u + 1;
    if (!random_) random_ = 1;
    static_used_ = static_end_ = 0;
    last_slot_ = Slot{};
    dynamic_name = nullptr;
    watch_block();
    // What nobody wrote reads as NaN, so that it shows in the result.
    if (launch->shared) memset(shared_ + kDynamicAt, 0xff, launch->shared);

    uint3 thread{};
    for (int i = 0; i < launch->threads; ++i) {
        Fibre& f = fibres_[size_t(i)];
        f.context = make_context(stacks.top(i), enter_thread, this);
        f.index = thread;
        f.waits = Waits::kNothing;
        f.site = EmuSite{};
        f.returned = false;
        f.phase = 0;
        if (++thread.x == shape.x) {
            thread.x = 0;
            if (++thread.y == shape.y) thread.y = 0, ++thread.z;
        }
    }
    live_ = launch->threads;
    at_barrier_ = counted_ = 0;
    ended_ = -1;
    warp_count_ = (live_ + 31) / 32;
    for (int w = 0; w < warp_count_; ++w) {
        int lanes = live_ - 32 * w;
        unsigned mask = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        warps_[w] = Warp{mask, mask, 0, 0};
    }
    current = &fibres_[order_seed ? size_t(random() % unsigned(launch->threads)) : 0];
    threadIdx = current->index;
    watch_thread(this, index(current));
    emu_switch(&scheduler_, current->context);
    watch_warp_end();
    watch_thread(nullptr, 0);
    current = nullptr;  // the block has ended, or has been abandoned
}

// The next thread to run: lanes of the running warp first, so that collectives complete early.
Fibre* Core::next() {
    int home = index(current) / 32;
    Fibre* to = first_runnable(home, false);
    // Threads that were paused go on when nobody else can, another warp's first.
    return to || !watching() ? to : first_runnable(home + 1, true);
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
            warp.paused = 0;
        }
        if (!warp.runnable) settle_active_mask(w);
        if (!warp.runnable) continue;
        unsigned later = w == here / 32 && !resume ? warp.runnable & ~((2u << here % 32) - 1) : 0;
        return &fibres_[size_t(32 * w + pick(later ? later : warp.runnable))];
    }
    return nullptr;
}

void Core::pause() {
    int i = index(current);
    warps_[i / 32].runnable &= ~(1u << i % 32);
    warps_[i / 32].paused |= 1u << i % 32;
    yield();
}

void Core::switch_to(Fibre* to) {
    Fibre* self = current;
    if (to == self) return;
    if (index(self) / 32 != index(to) / 32) watch_warp_end();
    current = to;
    threadIdx = to->index;
    watch_thread(this, index(to));
    emu_switch(&self->context, to->context);
}

// Leaves the running fibre, which cannot go on, for one that can.
void Core::yield() {
    Fibre* to = next();
    if (!to) lost();
    switch_to(to);
}

void Core::finish() {
    int i = index(current);
    Warp& warp = warps_[i / 32];
    warp.live &= ~(1u << i % 32);
    warp.runnable &= ~(1u << i % 32);
    --live_;
    if (!current->returned && ended_ < 0) {
        ended_ = i;
        current->site = EmuSite{};  // it waits nowhere
    }
    if (live_ && at_barrier_ == live_) release_barrier();
    if (warp.waiting) settle(i / 32);
    Fibre* to = live_ ? next() : nullptr;
    if (live_ && !to) lost();
    void* unused;
    if (!to || index(to) / 32 != i / 32) watch_warp_end();
    if (to) {
        current = to;
        threadIdx = to->index;
        watch_thread(this, index(to));
    }
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
        if (!(warps_[i / 32].live >> i % 32 & 1)) continue;
        if (first < 0) first = i;
        const EmuSite &a = fibres_[size_t(first)].site, &b = fibres_[size_t(i)].site;
        if (a.line != b.line || strcmp(a.file, b.file)) {
            watch_site(*this, "divergent-barrier", i, first);
            return;
        }
    }
    if (ended_ >= 0) watch_site(*this, "divergent-barrier", first, ended_);
}

void Core::release_barrier() {
    if (watching()) {
        check_barrier();
        watch_warp_end();
        watch_phase();
    }
    for (int w = 0; w < warp_count_; ++w) warps_[w].runnable = warps_[w].live;
    at_barrier_ = 0;
    count_result_ = counted_;  // nobody can reach the next barrier's release before reading it
    counted_ = 0;
    for (int i = 0; i < launch->threads; ++i) fibres_[size_t(i)].waits = Waits::kNothing;
}

uint64_t Core::collective(int kind, unsigned mask, uint64_t value, int parameter, EmuSite site) {
    Fibre* self = current;
    int i = index(self);
    Warp& warp = warps_[i / 32];
    unsigned bit = 1u << i % 32;
    self->waits = Waits::kCollective;
    self->kind = kind;
    self->mask = mask;
    self->value = value;
    self->parameter = parameter;
    self->site = site;
    if (!(mask & bit)) {
        char text[160];
        snprintf(text, sizeof text, "lane %d called %s with mask 0x%08x, which does not name it",
                 i % 32, kCollectiveNames[kind], mask);
        report("invalid-mask", Where{launch->kernel, block, self->index, site, self->pc}, text);
        abandon(cudaErrorLaunchFailure);
    }
    warp.runnable &= ~bit;
    warp.waiting |= bit;
    if (!(mask & warp.live & ~warp.waiting)) settle(i / 32);
    if (!(warp.runnable & bit)) yield();
    else watch_thread(this, i);  // a __syncwarp has moved its clock
    return self->value;
}

// Completes every collective of the warp whose lanes have all come. Lanes that have left the
// kernel are not waited for.
void Core::settle(int w) {
    Warp& warp = warps_[w];
    Fibre* lanes = &fibres_[size_t(32 * w)];
    for (unsigned pending = warp.waiting; pending;) {
        Fibre& first = lanes[__builtin_ctz(pending)];
        unsigned group = first.mask & warp.live;
        bool complete = !(group & ~warp.waiting);
        for (unsigned rest = group; complete && rest; rest &= rest - 1) {
            Fibre& f = lanes[__builtin_ctz(rest)];
            complete = f.mask == first.mask && f.kind == first.kind;
        }
        pending &= ~(1u << __builtin_ctz(pending));
        if (!complete) continue;
        pending &= ~group;
        watch_collective(*this, w, first.kind, group, first.mask);

        uint64_t value[32];
        uint64_t all = lanes[__builtin_ctz(group)].value;
        bool equal = true;
        uint64_t ballot = 0;
        int64_t sum = 0, smin = INT64_MAX, smax = INT64_MIN;
        uint32_t umin = ~0u, umax = 0, band = ~0u, bor = 0, bxor = 0;
        for (unsigned rest = group; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            uint64_t v = value[lane] = lanes[lane].value;
            equal &= v == all;
            ballot |= uint64_t(v == 1) << lane;
            sum += int64_t(v);
            smin = int32_t(v) < smin ? int32_t(v) : smin;
            smax = int32_t(v) > smax ? int32_t(v) : smax;
            umin = uint32_t(v) < umin ? uint32_t(v) : umin;
            umax = uint32_t(v) > umax ? uint32_t(v) : umax;
            band &= uint32_t(v);
            bor |= uint32_t(v);
            bxor ^= uint32_t(v);
        }
        for (unsigned rest = group; rest; rest &= rest - 1) {
            Fibre& f = lanes[__builtin_ctz(rest)];
            switch (f.kind) {
                case EMU_SYNCWARP: break;
                case EMU_SHUFFLE:
                case EMU_SHUFFLE_UP:
                case EMU_SHUFFLE_DOWN:
                case EMU_SHUFFLE_XOR:
                    // A lane that takes no part has nothing to give: NaN shows it.
                    if (f.parameter >= 0)
                        f.value = group >> f.parameter & 1 ? value[f.parameter] : ~uint64_t(0);
                    break;
                case EMU_BALLOT: f.value = ballot; break;
                case EMU_MATCH_ANY: {
                    uint64_t mine = f.value, same = 0;
                    for (unsigned r = group; r; r &= r - 1)
                        same |= uint64_t(value[__builtin_ctz(r)] == mine) << __builtin_ctz(r);
                    f.value = same;
                    break;
                }
                case EMU_MATCH_ALL: f.value = equal ? group : 0; break;
                case EMU_REDUCE_ADD: f.value = uint64_t(sum); break;
                case EMU_REDUCE_MIN_S: f.value = uint64_t(smin); break;
                case EMU_REDUCE_MAX_S: f.value = uint64_t(smax); break;
                case EMU_REDUCE_MIN_U: f.value = umin; break;
                case EMU_REDUCE_MAX_U: f.value = umax; break;
                case EMU_REDUCE_AND: f.value = band; break;
                case EMU_REDUCE_OR: f.value = bor; break;
                case EMU_REDUCE_XOR: f.value = bxor; break;
            }
            f.waits = Waits::kNothing;
        }
        warp.waiting &= ~group;
        warp.runnable |= group;
    }
}

void Core::refuse(const char* function, const void* pc) {
    char text[120];
    snprintf(text, sizeof text, "calls %s, which is for host code alone", function);
    report("host-call", Where{launch->kernel, block, current->index, {}, pc}, text);
    abandon(cudaErrorLaunchFailure);
}

unsigned Core::active_mask(EmuSite site) {
    Fibre* self = current;
    int i = index(self);
    self->waits = Waits::kActiveMask;
    self->site = site;
    warps_[i / 32].runnable &= ~(1u << i % 32);
    yield();
    return unsigned(self->value);
}

// Lanes that ask who is active wait until their warp can do nothing else; those at one place in
// the source then are each other's active lanes.
void Core::settle_active_mask(int w) {
    Fibre* lanes = &fibres_[size_t(32 * w)];
    EmuSite site{};
    unsigned group = 0;
    for (unsigned rest = warps_[w].live; rest; rest &= rest - 1) {
        Fibre& f = lanes[__builtin_ctz(rest)];
        if (f.waits != Waits::kActiveMask) continue;
        if (!group) site = f.site;
        if (f.site.line == site.line && f.site.file == site.file)
            group |= 1u << __builtin_ctz(rest);
    }
    for (unsigned rest = group; rest; rest &= rest - 1) {
        Fibre& f = lanes[__builtin_ctz(rest)];
        f.waits = Waits::kNothing;
        f.value = group;
    }
    warps_[w].runnable |= group;
}

const char* awaited(const Fibre& f) {
    if (f.waits == Waits::kBarrier) return "__syncthreads";
    return f.waits == Waits::kCollective ? kCollectiveNames[f.kind] : "";
}

// Every thread waits for something that will not come. Says who waits where, and ends the launch.
void Core::lost() {
    char text[1024];
    int used = 0;
    const Fibre* shown = nullptr;
    bool disagree = false;
    auto say = [&](const char* format, auto... arguments) {
        if (used < int(sizeof text))
            used += snprintf(text + used, sizeof text - size_t(used), format, arguments...);
    };
    struct Group {
        const Fibre* first;
        int threads;
    } groups[4];
    int count = 0;
    for (int i = 0; i < launch->threads; ++i) {
        const Fibre& f = fibres_[size_t(i)];
        if (!(warps_[i / 32].live >> i % 32 & 1)) continue;
        int g = 0;
        while (g < count &&
               !(groups[g].first->waits == f.waits && groups[g].first->site.line == f.site.line))
            ++g;
        if (g < count) ++groups[g].threads;
        else if (count < 4) groups[count++] = Group{&f, 1};
    }
    for (int g = 0; g < count; ++g) {
        const Fibre& f = *groups[g].first;
        if (!shown || (shown->waits == Waits::kBarrier && f.waits == Waits::kCollective))
            shown = &f;
        say("%s%d thread%s from (%u, %u, %u) wait%s at line %d, %s", g ? "; " : "",
            groups[g].threads, groups[g].threads == 1 ? "" : "s", f.index.x, f.index.y, f.index.z,
            groups[g].threads == 1 ? "s" : "", f.site.line, awaited(f));
        if (f.waits == Waits::kCollective) {
            const Warp& warp = warps_[index(&f) / 32];
            unsigned missing = f.mask & warp.live & ~warp.waiting;
            if (missing)
                say(" of lanes 0x%08x, and lane %d never comes", f.mask, __builtin_ctz(missing));
            else
                disagree = true,
                say(" of lanes 0x%08x, but lanes disagree about mask or operation", f.mask);
        }
    }
    Where where{launch->kernel, block, shown->index, shown->site, shown->pc};
    if (count > 1) {
        const Fibre* other = shown == groups[0].first ? groups[1].first : groups[0].first;
        where.other_site = other->site;
        where.other_thread = other->index;
    }
    report_waits(*this);
    report(disagree ? "invalid-mask" : "deadlock", where, text);
    abandon(cudaErrorLaunchFailure);
}

bool Core::find_shared_array(ptrdiff_t offset, size_t size) {
    if (offset >= ptrdiff_t(kDynamicAt))
        return size_t(offset) - kDynamicAt + size <= launch->shared;
    for (const Slot& s : slots_)
        if (s.key && s.block == block_serial_ && offset >= ptrdiff_t(s.offset) &&
            size_t(offset) + size <= s.offset + s.key->size) {
            last_slot_ = s;
            return true;
        }
    return false;
}

void* Core::shared(EmuSharedKey* key) {
    static std::atomic<int> keys{0};
    int slot = __atomic_load_n(&key->slot, __ATOMIC_RELAXED);
    if (!slot) {
        int fresh = ++keys;
        if (__atomic_compare_exchange_n(&key->slot, &slot, fresh, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            slot = fresh;
    }
    if (size_t(slot) >= slots_.size()) slots_.resize(size_t(slot) + 16);
    Slot& s = slots_[size_t(slot)];
    if (s.block != block_serial_) {
        size_t align = key->alignment < 16 ? 16 : key->alignment;
        static_used_ = (static_used_ + align - 1) / align * align + key->size;
        if (static_used_ > kStaticShared) {
            char text[200];
            snprintf(text, sizeof text,
                     "'%s' brings static shared memory to %zu bytes, and %zu is all there is; nvcc "
                     "would "
                     "not compile this: ask for dynamic shared memory",
                     key->name, static_used_, kStaticShared);
            report("shared-memory",
                   Where{launch->kernel, block, current->index, key->site, nullptr}, text);
            abandon(cudaErrorInvalidValue);
        }
        if (static_used_ > launch->static_shared) launch->static_shared = static_used_;
        // Watched arrays lie apart, so that a stray is in none; by multiples of 128 bytes, so that
        // the banks stay what they are.
        size_t offset = watching() ? (static_end_ + 127) / 128 * 128 : static_used_ - key->size;
        static_end_ = offset + key->size + 1024;
        s = Slot{key, block_serial_, offset};
        memset(shared_ + offset, 0xff, key->size);
    }
    return shared_ + s.offset;
}

}  // namespace emu

using emu::core;

// The call itself, not what follows it.
#define CALLER ((const char*)__builtin_return_address(0) - 1)

extern "C" int emu_barrier(int kind, int predicate, EmuSite site) {
    core()->current->pc = CALLER;
    return core()->barrier(kind, predicate, site);
}
extern "C" uint64_t emu_collective(int kind, unsigned mask, uint64_t value, int parameter,
                                   EmuSite site) {
    core()->current->pc = CALLER;
    return core()->collective(kind, mask, value, parameter, site);
}
extern "C" unsigned emu_active_mask(EmuSite site) { return core()->active_mask(site); }
extern "C" unsigned emu_thread() { return unsigned(core()->current_index()); }
extern "C" void* emu_shared(EmuSharedKey* key) { return core()->shared(key); }
extern "C" void* emu_dynamic_shared(const char* name, size_t element) {
    return core()->dynamic_shared(name, element);
}
extern "C" void emu_note_return() {
    if (emu::Core* c = core(); c && c->current) c->current->returned = true;
}
