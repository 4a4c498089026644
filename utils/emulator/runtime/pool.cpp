// How many cores work on a launch, and how the helpers are woken and waited for.
#include "pool.h"

#include <sched.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "block.h"
#include "faults.h"
#include "trace.h"
#include "watch.h"

namespace emu {
namespace {

struct Place {  // an OS thread that runs blocks
    pthread_t thread;
    Core* core;
};
std::mutex places_mutex;
Place places[256];
int place_count = 0;

void become_core() {
    use_signal_stack();
    Core* made = new Core;
    std::lock_guard<std::mutex> lock(places_mutex);
    if (place_count < 256) places[place_count++] = Place{pthread_self(), made};
}

class Pool {
   public:
    explicit Pool(int helpers) : helpers_(helpers) {
        for (int i = 0; i < helpers; ++i) std::thread([this] { serve(); }).detach();
    }
    void run(Launch& launch) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            launch_ = &launch;
            busy_ = helpers_;
            ++serial_;
        }
        wake_.notify_all();
        core()->run(launch);
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
            core()->run(*launch_);
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

}  // namespace

bool find_busy_thread(pthread_t* thread) {
    std::lock_guard<std::mutex> lock(places_mutex);
    for (int i = 0; i < place_count; ++i)
        if (places[i].core->current) return *thread = places[i].thread, true;
    return false;
}

void run_blocks(Launch& launch) {
    // A small launch costs less than waking a helper, and runs its blocks in order: what it prints
    // stays the same from run to run.
    constexpr uint64_t kSmall = 4096;
    static const int cores = core_count();
    if (!core()) become_core();
    if (cores == 1 || tracing() || watching() || launch.blocks == 1 ||
        launch.blocks * uint64_t(launch.threads) <= kSmall) {
        core()->run(launch);
        return;
    }
    static Pool* pool = new Pool(cores - 1);
    pool->run(launch);
}

}  // namespace emu
