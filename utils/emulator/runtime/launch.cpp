// Launches: checks the configuration, spreads blocks over the CPU's cores, catches what goes wrong.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "../include/emulator/api.h"
#include "block.h"
#include "device.h"
#include "report.h"
#include "trace.h"
#include "watch.h"

namespace emu {
namespace {

thread_local Core* this_core EMU_TLS = nullptr;

struct Place {  // an OS thread that runs blocks
    pthread_t thread;
    Core* core;
};
std::mutex places_mutex;
Place places[256];
int place_count = 0;

#if defined(__x86_64__)
void* program_counter(ucontext_t* c) { return (void*)c->uc_mcontext.gregs[REG_RIP]; }
void* stack_pointer(ucontext_t* c) { return (void*)c->uc_mcontext.gregs[REG_RSP]; }
void go_on_at(ucontext_t* c, void (*function)(int), char* stack, int argument) {
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)function;
    c->uc_mcontext.gregs[REG_RSP] = (greg_t)(((uintptr_t)stack & ~uintptr_t(15)) - 8);
    c->uc_mcontext.gregs[REG_RDI] = argument;
}
#else
void* program_counter(ucontext_t* c) { return (void*)c->uc_mcontext.pc; }
void* stack_pointer(ucontext_t* c) { return (void*)c->uc_mcontext.sp; }
void go_on_at(ucontext_t* c, void (*function)(int), char* stack, int argument) {
    c->uc_mcontext.pc = (uintptr_t)function;
    c->uc_mcontext.sp = (uintptr_t)stack & ~uintptr_t(15);
    c->uc_mcontext.regs[0] = argument;
}
#endif

// The innermost address in the kernel's own module: the fault may lie in a library it called.
const void* source_address(ucontext_t* context, const void* module_address, const char* stack_end) {
    void* pc = program_counter(context);
    Dl_info home, info;
    if (!dladdr(module_address, &home)) return pc;
    if (dladdr(pc, &info) && info.dli_fbase == home.dli_fbase) return pc;
    void** sp = (void**)((uintptr_t)stack_pointer(context) & ~uintptr_t(7));
    for (int i = 0; i < 4096 && (char*)(sp + i) < stack_end; ++i)
        if (dladdr(sp[i], &info) && info.dli_fbase == home.dli_fbase && sp[i] != home.dli_fbase)
            return (char*)sp[i] - 1;  // a return address: the call is just before
    return pc;
}

Where where(Core* core, ucontext_t* context) {
    if (!core || !core->current)
        return Where{nullptr, {}, {}, {nullptr, 0}, program_counter(context)};
    char* end = core->stacks.top(int(core->current_index())) - 64;
    return Where{core->launch->kernel,
                 core->block,
                 core->current->index,
                 {nullptr, 0},
                 source_address(context, (void*)core->launch->body, end)};
}

void abandon_here(int error) { this_core->abandon(error); }

void on_fault(int signal, siginfo_t* info, void* c) {
    ucontext_t* context = static_cast<ucontext_t*>(c);
    Core* core = this_core;
    bool in_kernel = core && core->current;
    const char* kind = "crash";
    char text[200];
    int error = cudaErrorLaunchFailure;
    if (signal == SIGFPE) {
        snprintf(text, sizeof text, "integer division by zero");
    } else if (signal == SIGILL || signal == SIGTRAP) {
        snprintf(text, sizeof text, "an illegal instruction was reached");
        error = cudaErrorIllegalInstruction;
    } else if (signal == SIGABRT) {
        snprintf(text, sizeof text, "the program called abort()");
    } else if (in_kernel && core->stacks.guard_hit(info->si_addr) >= 0) {
        kind = "stack-overflow";
        snprintf(
            text, sizeof text,
            "a thread used more than %zu KB of stack (large local array, or endless recursion)",
            Stacks::kBytes / 1024);
        error = cudaErrorHardwareStackError;
    } else {
        kind = in_kernel ? "illegal-address" : "crash";
        // The processor does not say which address where it is none that could exist.
        if (info->si_code == SI_KERNEL)
            snprintf(text, sizeof text,
                     "access to an address far outside of all memory, or not aligned for its type");
        else
            snprintf(text, sizeof text, "access to address %p, where there is no memory",
                     info->si_addr);
        error = cudaErrorIllegalAddress;
    }
    if (in_kernel && running.core && running.misaligned)
        error = cudaErrorMisalignedAddress;  // known already
    else report(kind, where(core, context), text);
    if (!in_kernel) {  // host code: nothing to go back to
        fflush(nullptr);
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        sigaction(signal, &standard, nullptr);
        return;  // the instruction runs again and ends the process as the system does
    }
    go_on_at(context, abandon_here, core->stacks.top(core->current_index()) - 1024, error);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// --- the time limit -----------------------------------------------------------------------------

std::atomic<double> deadline{0};  // seconds on the monotonic clock; 0: none
std::atomic<bool> hang_reported{false};
pthread_t main_thread;

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void on_timeout(int, siginfo_t*, void* c) {
    Core* core = this_core;
    bool in_kernel = core && core->current;
    report("timeout", where(core, static_cast<ucontext_t*>(c)),
           in_kernel
               ? "the kernel did not end within its time limit; it was here when it was stopped"
               : "the host code did not end within its time limit");
    hang_reported = true;
    for (;;) pause();  // the watchdog ends the process
}

void watch() {
    for (;;) {
        usleep(20000);
        double limit = deadline;
        if (limit == 0 || now() < limit) continue;
        pthread_t victim = main_thread;
        {
            std::lock_guard<std::mutex> lock(places_mutex);
            for (int i = place_count - 1; i >= 0; --i)
                if (places[i].core->current) victim = places[i].thread;
        }
        pthread_kill(victim, SIGUSR1);
        for (int i = 0; i < 50 && !hang_reported; ++i) usleep(10000);
        if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);  // what the kernel printed
        _exit(124);
    }
}

// --- the cores ----------------------------------------------------------------------------------

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
}

void install_handlers() {
    static std::once_flag once;
    std::call_once(once, [] {
        for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
            handle(signal, on_fault);
    });
}

// Handlers run on a stack of their own: the fibre's may be what overflowed.
void use_signal_stack() {
    constexpr size_t kSize = 64 * 1024;
    stack_t stack{};
    stack.ss_sp = malloc(kSize);
    stack.ss_size = kSize;
    sigaltstack(&stack, nullptr);
}

Core* make_core() {
    use_signal_stack();
    Core* made = new Core;
    std::lock_guard<std::mutex> lock(places_mutex);
    if (place_count < 256) places[place_count++] = Place{pthread_self(), made};
    return made;
}

class Pool {  // the other cores' threads; they sleep between launches
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
        this_core->run(launch);
        std::unique_lock<std::mutex> lock(mutex_);
        idle_.wait(lock, [this] { return busy_ == 0; });
    }

   private:
    void serve() {
        this_core = make_core();
        std::unique_lock<std::mutex> lock(mutex_);
        for (uint64_t seen = 0;;) {
            wake_.wait(lock, [&] { return serial_ != seen; });
            seen = serial_;
            lock.unlock();
            this_core->run(*launch_);
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

void run(Launch& launch) {
    // A small launch costs less than waking a helper, and runs its blocks in order: what it prints
    // stays the same from run to run.
    constexpr uint64_t kSmall = 4096;
    static const int cores = core_count();
    if (cores == 1 || tracing() || watching() || launch.blocks == 1 ||
        launch.blocks * uint64_t(launch.threads) <= kSmall) {
        this_core->run(launch);
        return;
    }
    static Pool* pool = new Pool(cores - 1);
    pool->run(launch);
}

}  // namespace

Core* core() { return this_core; }

}  // namespace emu

extern "C" void emu_launch(const dim3* grid, const dim3* block, size_t shared, cudaStream_t,
                           const char* kernel, void (*body)(void*), void* argument, EmuSite site) {
    using namespace emu;
    if (this_core && this_core->current) {
        report("not-supported",
               Where{this_core->launch->kernel, this_core->block, this_core->current->index, site,
                     nullptr},
               "a kernel launched from a kernel; the emulator has no dynamic parallelism");
        this_core->abandon(cudaErrorNotSupported);
    }
    if (device_lost()) return;  // after a fault nothing runs any more, as on a GPU
    const uint64_t threads = uint64_t(block->x) * block->y * block->z;
    const uint64_t blocks = uint64_t(grid->x) * grid->y * grid->z;
    // CUDA 13 calls all of these an invalid value (seen with 13.0 on an H200); before, the ones
    // about threads and blocks were cudaErrorInvalidConfiguration.
    if (threads == 0 || threads > kMaxThreads || block->x > 1024 || block->y > 1024 ||
        block->z > 64 || blocks == 0 || grid->x > 0x7fffffffu || grid->y > 65535 || grid->z > 65535)
        return set_error(cudaErrorInvalidValue);
    if (shared > dynamic_shared_limit()) return set_error(cudaErrorInvalidValue);

    install_handlers();
    if (!this_core) this_core = make_core();
    Launch launch{*grid, *block, shared, kernel, body, argument, int(threads), blocks};
    trace_launch(launch);
    watch_launch(launch);
    run(launch);
    watch_launch_end(launch);
    if (int error = launch.error) set_error(cudaError_t(error));
}

extern "C" void emu_trap(EmuSite site) {
    using namespace emu;
    report("trap",
           Where{this_core->launch->kernel, this_core->block, this_core->current->index, site,
                 nullptr},
           "the kernel called __trap()");
    this_core->abandon(cudaErrorLaunchFailure);
}

// What assert() calls, by way of a macro on the command line.
extern "C" [[noreturn]] void __emu_assert_fail(const char* condition, const char* file,
                                               unsigned line, const char* function) {
    using namespace emu;
    Core* c = this_core;
    if (!c || !c->current) {
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
        abort();
    }
    fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
            file, line, function, c->block.x, c->block.y, c->block.z, c->current->index.x,
            c->current->index.y, c->current->index.z, condition);
    char text[256];
    snprintf(text, sizeof text, "assertion `%s` failed", condition);
    report("assert",
           Where{c->launch->kernel, c->block, c->current->index, {file, int(line)}, nullptr}, text);
    c->abandon(cudaErrorAssert);
}

extern "C" void emu_watch_begin();

// 0: threads run in ascending order. Any other number: in an order that it determines.
extern "C" void emu_set_order(unsigned seed) { emu::order_seed = seed; }

extern "C" void emu_set_time_limit(double seconds) {
    using namespace emu;
    static std::once_flag once;
    deadline = seconds > 0 ? now() + seconds : 0;
    if (seconds > 0)
        std::call_once(once, [] {
            main_thread = pthread_self();
            use_signal_stack();
            install_handlers();
            handle(SIGUSR1, on_timeout);
            std::thread(watch).detach();
        });
}

// A program that is run whole takes its limit from the environment; its host code's crashes are
// reported too.
__attribute__((constructor)) static void whole_program() {
    if (const char* text = getenv("EMU_PROGRAM")) {
        emu::use_signal_stack();
        emu::install_handlers();
        if (double seconds = atof(text); seconds > 0) emu_set_time_limit(seconds);
    }
    if (getenv("EMU_DIAGNOSE")) emu_watch_begin();
    if (const char* text = getenv("EMU_ORDER")) emu_set_order(unsigned(atol(text)));
}
