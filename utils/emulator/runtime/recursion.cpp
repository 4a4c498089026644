// How deep functions that call themselves go. A thread of a card has 1 KB of stack, if no program
// asks for more; here it has two hundred times as much, for local arrays, which nvcc reserves
// apart.
#include "../include/emulator/api.h"
#include "block.h"
#include "hazard_kinds.h"

using namespace emu;

// nvcc's least frame of a function that calls itself: its return address, and what it needs behind
// the call (seen with 13.0 for sm_90).
static constexpr size_t kLeastFrame = 16;
static constexpr size_t kCertain = 2;  // times the limit: the driver rounds it up

// By a function that calls itself, as it begins: so deep is the running thread in it, and in others
// of the kind. Frames at or below this one have returned; a loop, made of a tail call, comes again.
extern "C" void emu_note_recursion(const char* function, const void* frame) {
    Core* c = core();
    if (!c || !c->current) return;
    auto& frames = c->current->frames;
    while (!frames.empty() && frames.back() <= frame) frames.pop_back();
    frames.push_back(frame);
    size_t limit = 0;
    cudaDeviceGetLimit(&limit, cudaLimitStackSize);
    if (frames.size() * kLeastFrame <= kCertain * limit) return;
    c->fail(cudaErrorHardwareStackError, hazard::recursion, {}, EMU_CALLER,
            "'%s' has called itself %zu times: a card's thread has %zu bytes of stack, and each "
            "call takes 16 or more",
            function, frames.size() - 1, limit);
}
