// Takes a thread off that has run for long: what it waits for may be another one's to do, and a
// loop that only looks at memory calls nothing of ours. In plain runs; in watched ones, whose
// outcome is the same each time, the accesses themselves are counted (watch.h).
//
// A timer interrupts the OS thread; its handler runs on the fibre's own stack, and switches to
// another fibre where the interrupted code is the kernel's own. Whatever the runtime or a library
// is doing is left to finish.
#pragma once

#include <cstdint>

namespace emu {

class Preemption {  // of what the calling OS thread runs, as long as this is there
   public:
    explicit Preemption(bool wanted);
    ~Preemption();
    void hurry(bool spinning);  // take threads off sooner, or later again: by whether any spins

   private:
    bool on_;
    uint64_t period_;
};

}  // namespace emu
