// Stackful fibres: one for each CUDA thread of a block. A switch is a dozen instructions.
#pragma once

#include <cstddef>

namespace emu {

// Saves the running context's stack pointer into *from and goes on at `to`.
extern "C" void emu_switch(void** from, void* to);

// A context that, when first switched to, calls entry(argument) on the stack ending at `top`.
// `entry` must never return.
void* make_context(char* top, void (*entry)(void*), void* argument);

// Room for `count` stacks, `guarded` with a page under each that none may touch; mapped at once,
// touched only when used.
class Stacks {
   public:
    // An odd number of pages: at a power of two apart, the stacks of a block would share the few
    // sets of the TLB, and each switch would miss.
    static constexpr size_t kBytes = 65 * 4096;
    Stacks(int count, bool guarded);
    ~Stacks();
    Stacks(const Stacks&) = delete;
    char* top(int i);  // readies stack i
    // Tops at equal offsets would share cache sets, and each switch would miss.
    const char* end(int i) const { return base_ + kBytes * size_t(i + 1) - size_t(i) * 320 % 4096; }
    bool holds(const void* address) const {
        const char* p = static_cast<const char*>(address);
        return p >= base_ && p < base_ + kBytes * size_t(count_);
    }
    bool in_guard(const void* address) const;  // in the page under a stack

   private:
    char* base_;
    int count_;
    int guarded_ = 0;  // so many have their page
};

}  // namespace emu
