// What ends a launch from outside of the scheduler: the processor's signals, __trap and assert.
// Each is reported, and the launch abandoned; in host code the process ends as the system does it.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>

namespace emu {

struct Where;

constexpr int kAsks = SIGUSR1;    // whoever runs: where it is, once its time is over
constexpr int kTick = SIGVTALRM;  // of the timer that takes threads off

constexpr int kHostReached = 86;  // exit status: host code at locked device memory

void install_fault_handlers();  // of the process

// Of the calling OS thread. Handlers run on a stack of their own: the fibre's may be what
// overflowed.
void use_signal_stack();

// An OS thread of the emulator's own, until the process ends. What is sent to the process is the
// host program's: its handlers must run on its own threads.
void start_thread(std::function<void()> work);

using Handler = void (*)(int signal, siginfo_t* info, void* context);
void handle(int signal, Handler handler);

// Of what a signal interrupted, from its handler's third argument. The hash is of all registers but
// the flags.
const void* program_counter(const void* context);
const void* stack_pointer(const void* context);
uint64_t hash_registers(const void* context);

// Where the calling OS thread was when a signal interrupted it.
Where interrupted(void* context);

}  // namespace emu
