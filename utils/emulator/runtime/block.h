// One thread block at a time on one CPU core: its threads as fibres, its barriers and warps.
//
// Core's members are in block.cpp, those about warps in collectives.cpp, those about barriers that
// lie in memory in arrivals.cpp. None knows of other cores (pool.h), or of what the threads'
// accesses mean (watch.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "../include/emulator/runtime.h"
#include "code.h"
#include "fibre.h"
#include "shared_memory.h"

namespace emu {

struct HazardKind;
constexpr int kMaxThreads = 1024;
struct Batch;
struct BlockWork;
struct Cluster;

struct Launch {
    dim3 grid, block;
    size_t shared;
    const char* kernel;
    void (*body)(void*);
    void* argument;
    int threads;                            // in a block
    uint64_t blocks;                        // in the grid
    std::atomic<uint64_t> next{0};          // the next block to run
    std::atomic<int> error{0};              // a cudaError; not 0 stops the launch
    std::atomic<uint64_t> resting{0};       // blocks that wait for others
    std::atomic<int> working{1}, stuck{0};  // OS threads: with blocks left; for which nothing moves
    std::atomic<bool> in_doubt{false};      // whether it will end: states are looked at
    size_t static_shared = 0;               // bytes, as far as blocks have asked for them
    bool cooperative = false;               // all blocks run at once
    std::atomic<bool> fences{false};        // a block rests at a fence
    dim3 cluster;                           // blocks that run together
    Code code;                              // the kernel's
};

enum class Waits : uint8_t {
    kNothing,
    kBarrier,
    kCollective,
    kActiveMask,
    kGrid,
    kArrivals,
    kMemoryBarrier,
    kNamedBarrier,
    kWarpgroup,
    kCluster,
};

// What a thread has looked at last, while watched: does it wait for a change?
struct Polls {
    struct {
        const void *address, *pc;
        uint64_t value;
        bool known;
    } seen[4];
    uint32_t next, repeats;
};

// What each switch and each wait needs stands first, in one line of the cache.
struct alignas(64) Fibre {
    void* context;
    uint3 index;  // threadIdx
    Waits waits;
    int kind;       // which barrier or collective
    unsigned mask;  // of the collective
    EmuSite site;
    const void* pc;  // of the call, in the kernel's own code
    // No more than now and then.
    bool returned;        // has come to a `return;`: it may leave before a barrier
    uint32_t phase;       // block barriers passed
    const void* barrier;  // in memory, that it waits at
    Batch* batch;         // of products that it gathers, or null: see Products
    uint32_t failures;    // of a compare-and-swap, since the thread last let others run
    // Where it paused, in the kernel's own code: a hash of its registers, and the end of its stack;
    // null: not known.
    const char* stack;
    uint64_t registers;
    std::vector<const void*> frames;  // of functions that call themselves, the deepest last
};

struct Warp {
    unsigned live, runnable, waiting, paused;  // lanes; waiting: at a collective
    unsigned spinning;                         // of those that paused: for others to go on
};

// The first warp function that lanes of a watched warp came to from two places. That is well where
// all come as often; where they do not, it shows only later.
struct Meeting {
    EmuSite here{nullptr, 0}, there{nullptr, 0};
    int kind = 0;
    const void *pc_here = nullptr, *pc_there = nullptr;  // of the calls, in the kernel's own code
};

// What the lanes of a warp hand each other at a collective.
struct Exchange {
    uint64_t value[32];  // what each lane brings, then what it takes away
    int parameter[32];   // of a shuffle: the source lane
    int kind[32];        // as its fibre has it, and the mask: here those of a warp are in few lines
    unsigned mask[32];
};

// Blocks that rest at a fence at a time: twice as many as a warp has lanes, where they have
// few threads.
inline uint64_t most_at_fences(int threads) { return uint64_t(std::clamp(16384 / threads, 2, 64)); }

// A core's place of work. `current` is null while no thread of a kernel runs on it, `launch`
// outside of launches.
class Core {
   public:
    explicit Core(int most_threads = kMaxThreads, bool guarded = true);
    ~Core();
    // One block, until it has ended, or until all its threads wait for the whole grid, or for what
    // other blocks do. True: they do, and `go_on` or `go_on_from_rest` lets them.
    bool start(Launch& launch, uint64_t block, Cluster* cluster = nullptr);
    // In a cluster: goes on, if any thread can, now that other blocks have.
    bool resume();
    void deadlock();  // nobody in the cluster can
    bool go_on();
    // Whether all of the block's threads wait or spin; and again. `alone`: no other block has run.
    bool rests() const { return resting_; }
    bool go_on_from_rest(bool alone);
    bool spins(int i) const { return warps_[i / 32].spinning >> i % 32 & 1; }
    void lose();  // tells that the block waits for others that have ended

    // Called on a fibre.
    int barrier(int kind, int predicate, EmuSite site);
    uint64_t collective(int kind, unsigned mask, uint64_t value, int parameter, EmuSite site);
    unsigned active_mask(EmuSite site);
    void grid_barrier(EmuSite site);
    void cluster_sync(EmuSite site);
    int cluster_rank() const;
    Core& peer(int rank, EmuSite site);  // a block of the cluster
    unsigned arrive(EmuArrivals* arrivals, unsigned count, bool drops);
    void await(const EmuArrivals* arrivals, unsigned phase, EmuSite site);
    EmuArrivals* team(unsigned first, unsigned count);
    void* team_memory(unsigned first, unsigned count, size_t bytes);
    void* shared_array(EmuSharedKey* key);
    BlockWork& work();  // of the running block
    bool has_work() const { return work_ != nullptr; }
    void block_on(Waits what, const void* barrier, EmuSite site);  // until wake()
    void wake(Waits what, const void* barrier);
    // Lets the rest of the warp, and then the other warps, catch up. `spins`: the thread waits for
    // what others do, perhaps in another block.
    void pause(bool spins);
    // At its second one a block has told others something, perhaps: they begin before it goes on,
    // and meet one that is not done. Not where it is watched: behind a rest, less is known.
    void note_fence();
    void take_off(void* context);  // the same, where a signal has interrupted it
    void note_state();             // the kernel has called what pauses
    // Reports what the running thread did, and ends the launch with a cudaError.
    [[noreturn]] void fail(int error, const HazardKind& kind, EmuSite site, const void* pc,
                           const char* message, ...) __attribute__((format(printf, 6, 7)));
    [[noreturn]] void abandon(int error);  // ends the launch from the running fibre
    [[noreturn]] void finish();            // ends the running fibre

    int live() const { return live_; }  // threads that have not left the kernel
    int current_index() const { return index(current); }
    uint32_t block_number() const { return block_number_; }
    uint32_t serial = 0;  // of its block, while watched
    const Fibre& fibre(int i) const { return fibres_[size_t(i)]; }
    Polls& polls() { return polls_[size_t(current_index())]; }  // of the running thread
    bool is_live(int i) const { return warps_[i / 32].live >> i % 32 & 1; }
    const Warp& warp(int w) const { return warps_[w]; }
    const Meeting& meeting(int w) const { return meetings_[w]; }  // without a file: none
    int collective_warp() const { return settling_; }

    Fibre* current = nullptr;
    Launch* launch = nullptr;
    uint3 block{};
    Stacks stacks;
    SharedMemory shared;

   private:
    bool run_block(uint64_t block);
    bool run_fibres();
    void become_current();
    void prepare_fibres();
    void yield();
    void switch_to(Fibre* fibre);
    void make_current(Fibre* fibre);
    Fibre* next();
    void release_barrier();
    void settle(int warp);
    void note_meeting(int warp, unsigned group);
    bool has_come(int warp, unsigned group, int first) const;
    void settle_active_mask(int warp);
    void check_barrier() const;
    Fibre* first_runnable(int from, bool resume);
    int pick(unsigned lanes);
    unsigned random();
    int index(const Fibre* fibre) const { return int(fibre - fibres_.data()); }

    std::vector<Fibre> fibres_;
    std::vector<Polls> polls_;  // of each thread, while watched
    Warp warps_[kMaxThreads / 32];
    Exchange exchanges_[kMaxThreads / 32];
    Meeting meetings_[kMaxThreads / 32];
    int warp_count_ = 0, live_ = 0, at_barrier_ = 0, counted_ = 0, count_result_ = 0;
    int at_grid_ = 0;
    static constexpr int kPasses = 16;
    int passes_ = 0;  // of threads that spin, with nobody else to go on
    struct Team {
        EmuArrivals arrivals;
        std::vector<char> memory;
    };
    std::map<std::pair<unsigned, unsigned>, Team> teams_;
    std::unique_ptr<BlockWork> work_;  // null: none so far
    Cluster* cluster_ = nullptr;
    bool lost_ = false;  // nobody can go on
    bool resting_ = false;
    int fences_ = 0;
    int settling_ = 0;  // the warp whose collective is being completed
    int ended_ = -1;    // a thread of the block that has come to the kernel's end, if any
    void* scheduler_ = nullptr;
    uint32_t block_number_ = 0;
    uint32_t random_ = 0;
};

// Where the thread of a block was that ran last on this OS thread, of whichever launch.
struct Where& left_at();

extern __thread Core* this_core EMU_TLS __attribute__((visibility("hidden")));
// The calling OS thread's; null where no kernel has run yet.
inline Core* core() { return this_core; }

// The call that a function was reached by, itself: not what follows it. Of functions that kernels
// call directly.
#define EMU_CALLER ((const char*)__builtin_return_address(0) - 1)

}  // namespace emu
