// Who goes on when: blocks that have not begun come first, as far as a GPU would hold them beside
// those that wait.
#include "turns.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "block.h"
#include "block_order.h"
#include "pool.h"
#include "preemption.h"
#include "spins.h"
#include "watch.h"

namespace emu {
namespace {

// Cores beside an OS thread's own, for blocks that wait.
class Spare {
   public:
    explicit Spare(int threads) : threads_(threads) {
        if (threads > room) cores.clear(), room = threads;
        for (auto& core : cores) free_.push_back(core.get());
    }
    ~Spare() {
        if (cores.size() > kKept) cores.resize(kKept);
    }
    Core* take() {
        if (free_.empty()) {
            const bool guarded = (cores.size() + 1) * size_t(threads_) <= 8192;  // pages are few
            cores.push_back(std::make_unique<Core>(room, guarded));
            return cores.back().get();
        }
        Core* core = free_.back();
        free_.pop_back();
        return core;
    }
    void give_back(Core* core) { free_.push_back(core); }

   private:
    static constexpr size_t kKept = 64;
    static thread_local int room;  // threads that each of them has
    static thread_local std::vector<std::unique_ptr<Core>> cores;
    int threads_;
    std::vector<Core*> free_;
};
thread_local int Spare::room = 0;
thread_local std::vector<std::unique_ptr<Core>> Spare::cores;

class Turns {
   public:
    explicit Turns(Launch& launch)
        : launch_(launch), preemption_(!watching()), spare_(launch.threads) {}
    void run() {
        Core* const home = core();
        here_ = home;
        while (!launch_.error.load(std::memory_order_relaxed))
            if (is_their_turn() || !begin_one())
                if (!go_round()) break;
        launch_.resting -= waiting_.size();
        if (stuck_) --launch_.stuck;
        --launch_.working;
        for (Core* core : waiting_) watch_block_end(core->serial);
        take_seat(home);
        home->launch = nullptr;
    }

   private:
    // Where some spin, a share of them begins in between: so the blocks that wait have few turns,
    // however many there are. Those that compute need their memory, and no others to go on.
    // Where they may tell others something, many begin before anyone is done.
    bool is_their_turn() const {
        const uint64_t share = spins_.repeat() ? waiting_.size() / 4 : 0;
        const uint64_t first = launch_.fences ? most_at_fences(launch_.threads) : 0;
        return begun_ > std::max(share, first) && !waiting_.empty();
    }

    // A block that has not begun, if there is one and a GPU would hold it too.
    bool begin_one() {
        if (is_full()) return false;
        const uint64_t place = launch_.next.fetch_add(1, std::memory_order_relaxed);
        if (place >= launch_.blocks) return false;
        ++begun_;
        if (!here_->start(launch_, block_at(launch_, place))) return true;
        if (waiting_.empty())
            most_ = most_resident(launch_.threads, launch_.shared + launch_.static_shared);
        waiting_.push_back(here_);
        ++launch_.resting;
        preemption_.hurry(true);
        here_ = spare_.take();
        return true;
    }

    bool is_full() const { return !waiting_.empty() && launch_.resting >= most_; }

    // Each block that waits, once. False where none is left.
    bool go_round() {
        if (waiting_.empty()) return false;
        begun_ = 0;
        const bool alone = launch_.blocks == 1;
        std::vector<Core*> still;
        std::reverse(waiting_.begin(), waiting_.end());  // chains of either direction are quick
        for (Core* core : waiting_) {
            if (launch_.error.load(std::memory_order_relaxed)) return true;
            if (core->go_on_from_rest(alone)) still.push_back(core);
            else spare_.give_back(core), --launch_.resting;
        }
        const bool ended = still.size() < waiting_.size();
        waiting_.swap(still);
        judge(ended);
        return true;
    }

    // Whether there is any use in going on.
    void judge(bool ended) {
        if (ended) spins_.restart(), rounds_ = 0;
        else if (++rounds_ > kSurelyEnough) launch_.in_doubt = true;
        const bool all = is_full() || launch_.next >= launch_.blocks;
        const bool over = !ended && spins_.over(waiting_) && all;
        preemption_.hurry(!launch_.in_doubt || spins_.any());
        if (over != stuck_) launch_.stuck += over ? 1 : -1, stuck_ = over;
        if (over && launch_.stuck == launch_.working && !launch_.error) report_spin(waiting_);
    }
    Launch& launch_;
    Preemption preemption_;
    Spare spare_;
    Spins spins_;
    Core* here_ = nullptr;  // free for the next block
    std::vector<Core*> waiting_;
    static constexpr int kSurelyEnough = 16;
    int rounds_ = 0;     // since a block has ended
    size_t begun_ = 0;   // blocks, since those that wait had their turn
    uint64_t most_ = 0;  // blocks that a GPU holds
    bool stuck_ = false;
};

}  // namespace

void run_in_turns(Launch& launch) { Turns(launch).run(); }

// A cooperative launch: every block has a core of its own, and one OS thread goes from block to
// block until all have ended: on from where all of a block's threads wait for the grid, or pause.
void run_together(Launch& launch) {
    Preemption preemption(!watching());
    Spins spins;
    auto& cores = cores_for(launch, launch.blocks);
    Core* const home = core();
    std::vector<Core*> waiting, still;
    for (uint64_t b = 0; b < launch.blocks && !launch.error; ++b)
        if (cores[b]->start(launch, block_at(launch, b))) waiting.push_back(cores[b].get());
    bool all = waiting.size() == launch.blocks;
    while (!waiting.empty() && !launch.error) {
        const bool resting = std::any_of(waiting.begin(), waiting.end(),
                                         [](const Core* core) { return core->rests(); });
        if (!resting && !all) {
            waiting.front()->lose();
            break;
        }
        if (!resting) watch_grid_barrier();
        still.clear();
        for (Core* core : waiting) {
            if (resting && !core->rests()) still.push_back(core);  // it is at the grid's barrier
            else if (!launch.error &&
                     (resting ? core->go_on_from_rest(launch.blocks == 1) : core->go_on()))
                still.push_back(core);
        }
        const bool ended = still.size() < waiting.size();
        launch.in_doubt = true;
        if (!resting || ended) spins.restart();
        else if (spins.over(still)) report_spin(still);
        preemption.hurry(spins.any());
        all = still.empty() || ((all || !resting) && still.size() == waiting.size());
        waiting.swap(still);
    }
    take_seat(home);
}

}  // namespace emu
