// One thread block at a time on one CPU core: its threads as fibres, its barriers and warps.
#pragma once

#include <atomic>
#include <vector>

#include "../include/emulator/runtime.h"
#include "fibre.h"

namespace emu {

constexpr int kMaxThreads = 1024;
constexpr size_t kStaticShared = 48 * 1024;
constexpr size_t kDynamicShared = 227 * 1024;

// A block's shared memory: its static arrays, then from kDynamicAt its dynamic array, with room
// before, between and behind that belongs to nobody.
constexpr size_t kSharedGap = size_t(1) << 20;
constexpr size_t kDynamicAt = size_t(2) << 20;
constexpr size_t kSharedSpan = kDynamicAt + (size_t(1) << 20);

struct Launch {
    dim3 grid, block;
    size_t shared;
    const char* kernel;
    void (*body)(void*);
    void* argument;
    int threads;                    // in a block
    uint64_t blocks;                // in the grid
    std::atomic<uint64_t> next{0};  // the next block to run
    std::atomic<int> error{0};      // a cudaError; not 0 stops the launch
    size_t static_shared = 0;       // bytes, as far as blocks have asked for them
};

enum class Waits : uint8_t { kNothing, kBarrier, kCollective, kActiveMask };

struct Fibre {
    void* context;
    uint3 index;  // threadIdx
    Waits waits;
    int kind;        // which barrier or collective
    unsigned mask;   // of the collective
    uint64_t value;  // what the thread brings, then what it takes away
    int parameter;   // a shuffle's source lane
    EmuSite site;
    const void* pc;  // of the call, in the kernel's own code
    bool returned;   // has come to a `return;`: it may leave before a barrier
    uint32_t phase;  // block barriers passed
};

const char* awaited(const Fibre& fibre);  // such as "__syncthreads"; "" where it waits for nothing

struct Warp {
    unsigned live, runnable, waiting, paused;  // lanes; waiting: at a collective
};

// A core's place of work. `current` is null while no kernel runs on it.
class Core {
   public:
    Core();
    void run(Launch& launch);  // takes blocks until none is left or the launch has failed

    // Called on a fibre.
    int barrier(int kind, int predicate, EmuSite site);
    uint64_t collective(int kind, unsigned mask, uint64_t value, int parameter, EmuSite site);
    unsigned active_mask(EmuSite site);
    [[noreturn]] void refuse(const char* function, const void* pc);  // that nvcc would not compile
    void* shared(EmuSharedKey* key);
    void* dynamic_shared(const char* name, size_t element) {
        dynamic_name = name;
        dynamic_element = element;
        return shared_ + kDynamicAt;
    }
    void pause();  // lets the rest of the warp, and then the other warps, catch up
    [[noreturn]] void abandon(int error);  // ends the launch from the running fibre
    [[noreturn]] void finish();            // ends the running fibre

    int live() const { return live_; }  // threads that have not left the kernel
    int current_index() const { return index(current); }
    uint32_t block_number() const { return block_number_; }
    // Offset in the block's shared memory, negative in the gap before it; or kNotShared.
    static constexpr ptrdiff_t kNotShared = PTRDIFF_MIN;
    ptrdiff_t shared_offset(const void* address) const {
        ptrdiff_t offset = static_cast<const char*>(address) - shared_;
        return offset >= -ptrdiff_t(kSharedGap) && offset < ptrdiff_t(kSharedSpan) ? offset
                                                                                   : kNotShared;
    }
    bool in_shared_array(ptrdiff_t offset, size_t size) {
        const Slot& s = last_slot_;
        return (s.key && offset >= ptrdiff_t(s.offset) &&
                size_t(offset) + size <= s.offset + s.key->size) ||
               find_shared_array(offset, size);
    }
    // The array that in_shared_array found last.
    const char* last_array(size_t* bytes) const {
        *bytes = last_slot_.key ? last_slot_.key->size : 0;
        return shared_ + last_slot_.offset;
    }
    const Fibre& fibre(int i) const { return fibres_[size_t(i)]; }
    // The declared arrays of the running block, in the order of their offsets.
    struct Slot {
        const EmuSharedKey* key;
        uint64_t block;
        size_t offset;
    };
    const std::vector<Slot>& shared_slots() const { return slots_; }
    uint64_t block_serial() const { return block_serial_; }

    Fibre* current = nullptr;
    Launch* launch = nullptr;
    uint3 block{};
    Stacks stacks{kMaxThreads};
    const char* dynamic_name = nullptr;  // of the array that the kernel declared
    size_t dynamic_element = 0;

   private:
    void run_block(uint64_t block);
    void yield();
    void switch_to(Fibre* fibre);
    Fibre* next();
    void release_barrier();
    void settle(int warp);
    void settle_active_mask(int warp);
    void check_barrier() const;
    bool find_shared_array(ptrdiff_t offset, size_t size);
    Fibre* first_runnable(int from, bool resume);
    int pick(unsigned lanes);
    unsigned random();
    [[noreturn]] void lost();
    int index(const Fibre* fibre) const { return int(fibre - fibres_.data()); }

    std::vector<Fibre> fibres_{kMaxThreads};
    Warp warps_[kMaxThreads / 32];
    int warp_count_ = 0, live_ = 0, at_barrier_ = 0, counted_ = 0, count_result_ = 0;
    int ended_ = -1;  // a thread of the block that has come to the kernel's end, if any
    void* scheduler_ = nullptr;
    char* shared_;
    size_t static_used_ = 0;  // bytes, as a GPU would count them
    size_t static_end_ = 0;   // offset: watched arrays have gaps between them
    Slot last_slot_{};
    std::vector<Slot> slots_;
    uint64_t block_serial_ = 0;
    uint32_t block_number_ = 0;
    uint32_t random_ = 0;
};

extern unsigned order_seed;  // of the order in which threads run; 0: ascending

Core* core();  // of the calling OS thread; null where no kernel has run yet

}  // namespace emu
