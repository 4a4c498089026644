// Whether threads that wait for a change will ever see one.
//
// A thread that spins comes back to where it was: with the same registers, and the same on its
// stack. If that is all that any thread of the launch still does, nothing will change any more. A
// loop that counts is another each time, and so is one that has read something new.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace emu {

class Core;
struct Launch;

class Spins {  // of the blocks that wait in turns on one OS thread
   public:
    // After each of them has had its turn: whether all have been where they are for long.
    bool over(const std::vector<Core*>& blocks);
    bool any() const { return any_; }  // whether any thread may have come back to where it was
    bool repeat() const { return repeat_; }  // and whether one has
    void restart();                          // something else has changed

   private:
    struct Circle {  // of a thread: states that it has been in
        uint64_t block;
        std::vector<uint64_t> seen;
        uint32_t old;  // so many in a row are among them
    };
    bool comes_back(const Core& core, int thread, Circle& circle);
    std::unordered_map<const void*, Circle> circles_;  // by fibre
    double since_ = 0;
    bool any_ = false, repeat_ = false;
};

// Tells that a launch will not end, by what a thread of the first block that spins is at, and ends
// it.
void report_spin(const std::vector<Core*>& blocks);

}  // namespace emu
