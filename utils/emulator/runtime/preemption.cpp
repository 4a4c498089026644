// The timer of an OS thread, and what its signal does.
#include "preemption.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "block.h"
#include "faults.h"

namespace emu {
namespace {

constexpr uint64_t kSlow = 10'000'000, kQuick = 100'000;  // nanoseconds

// Of the OS thread, and who ran when it last came.
struct Timer {
    timer_t id{};
    bool made = false, failed = false;
    const Fibre* fibre = nullptr;
    uint64_t when = 0;  // of the fibre: how far it had come
    ~Timer() {
        if (made) timer_delete(id);
    }
};
thread_local Timer timer;

void on_tick(int, siginfo_t*, void* context) {
    Core* c = core();
    if (!c || !c->current) return;
    const Fibre* fibre = c->current;
    const uint64_t when = uint64_t(c->block_number()) << 32 | fibre->phase;
    const bool still = timer.fibre == fibre && timer.when == when;
    timer.fibre = fibre;
    timer.when = when;
    if (!still) return;
    if (!c->launch->code.holds(program_counter(context))) return;
    const int error = errno;
    sigset_t set;  // only now: a slow machine would be interrupted here over and over
    sigemptyset(&set);
    sigaddset(&set, kTick);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    c->take_off(context);
    errno = error;
}

bool make() {
    if (timer.made || timer.failed) return timer.made;
    struct sigaction action{};
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_RESTART;  // on the fibre's stack: it stays there
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTick;
    event._sigev_un._tid = int(syscall(SYS_gettid));
    timer.made = sigaction(kTick, &action, nullptr) == 0 &&
                 timer_create(CLOCK_MONOTONIC, &event, &timer.id) == 0;
    timer.failed = !timer.made;
    return timer.made;
}

void set(uint64_t period) {
    itimerspec spec{};
    spec.it_interval.tv_nsec = spec.it_value.tv_nsec = long(period);
    timer_settime(timer.id, 0, &spec, nullptr);
}

}  // namespace

Preemption::Preemption(bool wanted) : on_(wanted && make()), period_(kSlow) {
    if (!on_) return;
    timer.fibre = nullptr;
    set(period_);
}
Preemption::~Preemption() {
    if (on_) set(0);
}

void Preemption::hurry(bool spinning) {
    const uint64_t period = spinning ? kQuick : std::min(kSlow, 2 * period_);
    if (!on_ || period == period_) return;
    set(period_ = period);
}

namespace {

struct Caller {
    Fibre* fibre;
    const Code& code;
};

_Unwind_Reason_Code look_for(_Unwind_Context* frame, void* argument) {
    const Caller& caller = *static_cast<Caller*>(argument);
    if (!caller.code.holds((const void*)_Unwind_GetIP(frame))) return _URC_NO_REASON;
    uint64_t hash = uint64_t(_Unwind_GetIP(frame));
#if defined(__x86_64__)
    constexpr int kKept[] = {3, 6, 12, 13, 14, 15};  // by those that it calls: rbx, rbp, r12 to r15
#else
    constexpr int kKept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
#endif
    for (int number : kKept)
        hash = (hash ^ hash >> 29 ^ uint64_t(_Unwind_GetGR(frame, number))) * 0x9e3779b97f4a7c15ull;
    caller.fibre->registers = hash;
    caller.fibre->stack = reinterpret_cast<const char*>(_Unwind_GetCFA(frame));
    return _URC_END_OF_STACK;
}

}  // namespace

void Core::note_state() {
    Caller caller{current, launch->code};
    _Unwind_Backtrace(look_for, &caller);
}

// On the fibre's own stack, in the signal's handler.
void Core::take_off(void* context) {
    Fibre* self = current;
    self->pc = program_counter(context);
    if (launch->in_doubt) {
        self->stack = static_cast<const char*>(stack_pointer(context));
        self->registers = hash_registers(context);
    }
    pause(true);
}

}  // namespace emu
