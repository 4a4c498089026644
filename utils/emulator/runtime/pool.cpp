// How many cores work on a launch, and how the helpers are woken and waited for.
#include "pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "block.h"
#include "cluster.h"
#include "device.h"
#include "faults.h"
#include "trace.h"
#include "turns.h"
#include "watch.h"

namespace emu {
namespace {

// An OS thread that runs blocks, until it ends. Its core goes to the next one then.
struct Place {
    pthread_t thread;
    Core* core;
    bool taken;
    std::atomic<Core*> now;  // what runs there: the core, or one beside it
};
std::mutex places_mutex;
std::deque<Place>& places = *new std::deque<Place>;  // never destroyed: threads end late
thread_local Place* my_place = nullptr;

struct Seat {
    size_t place = SIZE_MAX;
    ~Seat() {
        std::lock_guard<std::mutex> lock(places_mutex);
        if (place < places.size()) places[place].taken = false;
        this_core = nullptr;
    }
};

void become_core() {
    static thread_local Seat seat;
    use_signal_stack();
    std::lock_guard<std::mutex> lock(places_mutex);
    size_t free = 0;
    while (free < places.size() && places[free].taken) ++free;
    if (free == places.size()) places.emplace_back().core = new Core;
    my_place = &places[free];
    my_place->thread = pthread_self();
    my_place->taken = true;
    seat.place = free;
    take_seat(my_place->core);
}

class Pool {
   public:
    explicit Pool(int helpers) : helpers_(helpers) {
        for (int i = 0; i < helpers; ++i) start_thread([this] { serve(); });
    }
    void run(Launch& launch) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            launch_ = &launch;
            launch.working = helpers_ + 1;
            busy_ = helpers_;
            ++serial_;
        }
        wake_.notify_all();
        run_in_turns(launch);
        std::unique_lock<std::mutex> lock(mutex_);
        idle_.wait(lock, [this] { return busy_ == 0; });
    }

   private:
    void serve() {
        pthread_setname_np(pthread_self(), "emulator");  // who looks for others' threads knows ours
        become_core();
        std::unique_lock<std::mutex> lock(mutex_);
        for (uint64_t seen = 0;;) {
            wake_.wait(lock, [&] { return serial_ != seen; });
            seen = serial_;
            lock.unlock();
            run_in_turns(*launch_);
            lock.lock();
            if (--busy_ == 0) idle_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    Launch* launch_ = nullptr;
    int helpers_, busy_ = 0;
    uint64_t serial_ = 0;
};

int core_count() {
    if (const char* text = getenv("EMU_THREADS"))
        if (int n = atoi(text); n > 0) return n;
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Cluster by cluster, the blocks of each in turns.
void run_clusters(Launch& launch) {
    const dim3 size = launch.cluster, grid = launch.grid;
    const size_t count = size_t(size.x) * size.y * size.z;
    const auto& cores = cores_for(launch, count);
    std::vector<Core*> places;
    for (size_t i = 0; i < count; ++i) places.push_back(cores[i].get());
    std::vector<uint64_t> numbers(count);
    Core* const home = core();
    for (unsigned z = 0; z < grid.z; z += size.z)
        for (unsigned y = 0; y < grid.y; y += size.y)
            for (unsigned x = 0; x < grid.x && !launch.error; x += size.x) {
                for (size_t i = 0; i < count; ++i) {
                    const uint64_t row = y + i / size.x % size.y, layer = z + i / size.x / size.y;
                    numbers[i] = (layer * grid.y + row) * grid.x + x + i % size.x;
                }
                run_cluster(launch, places, numbers);
            }
    take_seat(home);
}

}  // namespace

void take_seat(Core* core) {
    this_core = core;
    my_place->now.store(core, std::memory_order_relaxed);
}

std::vector<std::unique_ptr<Core>>& cores_for(const Launch& launch, uint64_t count) {
    static std::vector<std::unique_ptr<Core>>& cores = *new std::vector<std::unique_ptr<Core>>;
    static int room = 0;  // threads that each of them has
    static bool guarded = true;
    const bool guard = count * uint64_t(launch.threads) <= 8192;  // pages are few
    if (launch.threads > room || guard != guarded) cores.clear();
    if (cores.empty()) room = launch.threads, guarded = guard;
    while (cores.size() < count) cores.push_back(std::make_unique<Core>(room, guarded));
    return cores;
}

static uint64_t resident_on_one(int threads, size_t shared) {
    const int warps = (threads + 31) / 32;
    uint64_t blocks = uint64_t(kResidentThreads / (32 * warps));
    if (blocks > kResidentBlocks) blocks = kResidentBlocks;
    const size_t by_shared = (kDynamicShared + 1024) / (shared + 1024);
    return by_shared < blocks ? by_shared : blocks;
}
uint64_t resident_grid(int threads, size_t shared) {
    return multiprocessors() * resident_on_one(threads, shared);
}
uint64_t most_resident(int threads, size_t shared) {
    return std::max(multiprocessors(), kMostMultiprocessors) * resident_on_one(threads, shared);
}

bool find_busy_thread(pthread_t* thread) {
    std::lock_guard<std::mutex> lock(places_mutex);
    for (const Place& place : places)
        if (const Core* now = place.now; place.taken && now && now->current)
            return *thread = place.thread, true;
    return false;
}

void run_blocks(Launch& launch) {
    // A small launch costs less than waking a helper, and runs its blocks in order: what it prints
    // stays the same from run to run.
    constexpr uint64_t kSmall = 4096;
    static const int cores = core_count();
    if (!core()) become_core();
    if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1) return run_clusters(launch);
    if (launch.cooperative) return run_together(launch);
    if (cores == 1 || tracing() || watching() || launch.blocks == 1 ||
        launch.blocks * uint64_t(launch.threads) <= kSmall) {
        run_in_turns(launch);
        return;
    }
    static Pool* pool = new Pool(cores - 1);
    pool->run(launch);
}

}  // namespace emu
