// From a signal to a report and the end of the launch. Here alone are the processor's registers
// named.
#include "faults.h"

#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "../include/emulator/errors.h"
#include "block.h"
#include "heap.h"
#include "report.h"
#include "watch.h"

namespace emu {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

uint64_t mixed(uint64_t hash, const void* words, size_t bytes) {
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, static_cast<const char*>(words) + i, 8);
        hash ^= word;
        hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
    }
    return hash;
}

}  // namespace

#if defined(__x86_64__)
const void* program_counter(const void* c) {
    return (const void*)static_cast<const ucontext_t*>(c)->uc_mcontext.gregs[REG_RIP];
}
const void* stack_pointer(const void* c) {
    return (const void*)static_cast<const ucontext_t*>(c)->uc_mcontext.gregs[REG_RSP];
}
uint64_t hash_registers(const void* c) {
    const mcontext_t& m = static_cast<const ucontext_t*>(c)->uc_mcontext;
    uint64_t hash = mixed(0, m.gregs, (REG_RIP + 1) * sizeof m.gregs[0]);  // behind them: flags
    return m.fpregs ? mixed(hash, m.fpregs->_xmm, sizeof m.fpregs->_xmm) : hash;
}
#else
const void* program_counter(const void* c) {
    return (const void*)static_cast<const ucontext_t*>(c)->uc_mcontext.pc;
}
const void* stack_pointer(const void* c) {
    return (const void*)static_cast<const ucontext_t*>(c)->uc_mcontext.sp;
}
uint64_t hash_registers(const void* c) {
    const mcontext_t& m = static_cast<const ucontext_t*>(c)->uc_mcontext;
    const auto& vectors = *reinterpret_cast<const fpsimd_context*>(m.__reserved);
    const uint64_t hash = mixed(m.pc, m.regs, sizeof m.regs);
    const bool known = vectors.head.magic == FPSIMD_MAGIC;
    return known ? mixed(hash, vectors.vregs, sizeof vectors.vregs) : hash;
}
#endif

namespace {

#if defined(__x86_64__)
void go_on_at(ucontext_t* c, void (*function)(int), char* stack, int argument) {
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)function;
    c->uc_mcontext.gregs[REG_RSP] = (greg_t)(((uintptr_t)stack & ~uintptr_t(15)) - 8);
    c->uc_mcontext.gregs[REG_RDI] = argument;
}
#else
void go_on_at(ucontext_t* c, void (*function)(int), char* stack, int argument) {
    c->uc_mcontext.pc = (uintptr_t)function;
    c->uc_mcontext.sp = (uintptr_t)stack & ~uintptr_t(15);
    c->uc_mcontext.regs[0] = argument;
}
#endif

struct Caller {
    const Code& code;
    const void* call;
};

_Unwind_Reason_Code look_for_caller(_Unwind_Context* frame, void* argument) {
    Caller& caller = *static_cast<Caller*>(argument);
    int interrupted = 0;  // there; else the frame goes on there after a call
    const char* pc = (const char*)_Unwind_GetIPInfo(frame, &interrupted);
    if (!caller.code.holds(pc)) return _URC_NO_REASON;
    caller.call = interrupted ? pc : pc - 1;
    return _URC_END_OF_STACK;
}

// Whether a call ends there, in code that holds the address: else that is no return address, but
// may point to a string or to an unwinder's table, which lie in the same segment.
bool follows_call(const void* address, const Code& code) {
    const auto* at = static_cast<const unsigned char*>(address);
    if ((const char*)at - code.begin < 8) return false;
#if defined(__x86_64__)
    const bool direct = at[-5] == 0xe8, by_table = at[-6] == 0xff && at[-5] == 0x15;
    const bool by_register = at[-2] == 0xff && (at[-1] & 0xf8) == 0xd0;
    return direct || by_table || by_register || (at[-3] == 0xff && (at[-2] & 0xf8) == 0x50);
#else
    uint32_t before;
    memcpy(&before, at - sizeof before, sizeof before);
    return before >> 26 == 0x25 || (before & 0xfffffc1f) == 0xd63f0000;  // bl, blr
#endif
}

// The innermost address in the kernel's own module: the fault may lie in a library it called.
const void* source_address(const ucontext_t* context, const Code& code, const char* stack_end) {
    const void* pc = program_counter(context);
    if (code.holds(pc)) return pc;
    Caller caller{code, nullptr};
    _Unwind_Backtrace(look_for_caller, &caller);
    if (caller.call) return caller.call;
    // A switch of stacks, or a call of what is no function, has no frame that could be unwound. Any
    // word may be a return address there, one that an earlier call has left behind, too.
    void** sp = (void**)((uintptr_t)stack_pointer(context) & ~uintptr_t(7));
    for (int i = 0; i < 4096 && (char*)(sp + i) < stack_end; ++i)
        if (code.holds(sp[i]) && follows_call(sp[i], code))
            return (char*)sp[i] - 1;  // a return address: the call is just before
    return pc;
}

struct Fault {
    const HazardKind* kind;
    int error;
    char text[200];
};

Fault illegal_access(const siginfo_t& info, const Core* busy) {
    Fault fault{busy ? &hazard::illegal_address : &hazard::crash, cudaErrorIllegalAddress, {}};
    if (busy && busy->stacks.in_guard(info.si_addr)) {
        fault.kind = &hazard::stack_overflow;
        fault.error = cudaErrorHardwareStackError;
        snprintf(fault.text, sizeof fault.text,
                 "a thread used more than %zu KB of stack (large local array, or endless "
                 "recursion)",
                 Stacks::kBytes / 1024);
    } else if (info.si_code == SI_KERNEL) {
        // The processor does not say which address where it is none that could exist.
        strcpy(fault.text,
               "access to an address far outside of all memory, or not aligned for its type");
    } else {
        snprintf(fault.text, sizeof fault.text, "access to address %p, where there is no memory",
                 info.si_addr);
    }
    return fault;
}

// `busy`: the core, where a kernel runs on it.
Fault fault_of(int signal, const siginfo_t& info, const Core* busy) {
    switch (signal) {
        case SIGFPE: return {&hazard::crash, cudaErrorLaunchFailure, "integer division by zero"};
        case SIGILL:
        case SIGTRAP:
            return {&hazard::crash, cudaErrorIllegalInstruction,
                    "an illegal instruction was reached"};
        case SIGABRT: return {&hazard::crash, cudaErrorLaunchFailure, "the program called abort()"};
        default: return illegal_access(info, busy);
    }
}

void abandon_here(int error) { core()->abandon(error); }

void on_fault(int signal, siginfo_t* info, void* context) {
    Core* busy = core() && core()->current ? core() : nullptr;
    Fault fault = fault_of(signal, *info, busy);
    if (busy && running.core && running.misaligned)
        fault.error = cudaErrorMisalignedAddress;  // known already
    else report(*fault.kind, interrupted(context), fault.text);
    if (!busy && signal == SIGSEGV && heap().locked() && heap().in_range(info->si_addr))
        _exit(kHostReached);
    if (!busy) {  // host code: nothing to go back to
        fflush(nullptr);
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        sigaction(signal, &standard, nullptr);
        return;  // the instruction runs again and ends the process as the system does
    }
    go_on_at(static_cast<ucontext_t*>(context), abandon_here,
             busy->stacks.top(busy->current_index()) - 1024, fault.error);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

Where interrupted(void* c) {
    ucontext_t* context = static_cast<ucontext_t*>(c);
    Core* at = core();
    if (!at || !at->current) return Where{nullptr, {}, {}, {nullptr, 0}, program_counter(context)};
    char* end = at->stacks.top(at->current_index()) - 64;
    // On another stack it is between two turns: that one's frames lead to the launch.
    const char* sp = (const char*)stack_pointer(context);
    const bool between = at->current->pc && (sp >= end || sp < end - 2 * Stacks::kBytes);
    // While an access is looked at the stack is ours, with whatever calls before have left there.
    const void* pc = running.core && running.pc ? running.pc
                     : between                  ? at->current->pc
                                                : source_address(context, at->launch->code, end);
    return Where{at->launch->kernel, at->block, at->current->index, {nullptr, 0}, pc};
}

void handle(int signal, Handler handler) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
}

void install_fault_handlers() {
    static const bool once = [] {
        for (int signal : kFaults) handle(signal, on_fault);
        return true;
    }();
    (void)once;
}

void start_thread(std::function<void()> work) {
    sigset_t others, before;
    sigfillset(&others);
    for (int signal : kFaults) sigdelset(&others, signal);
    for (int signal : {kAsks, kTick}) sigdelset(&others, signal);
    pthread_sigmask(SIG_SETMASK, &others, &before);  // a thread begins with its maker's
    std::thread(std::move(work)).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void use_signal_stack() {
    constexpr size_t kSize = 64 * 1024;
    stack_t stack{};
    stack.ss_sp = malloc(kSize);
    stack.ss_size = kSize;
    sigaltstack(&stack, nullptr);
}

}  // namespace emu

using emu::core;
namespace hazard = emu::hazard;

extern "C" void emu_trap(EmuSite site) {
    core()->fail(cudaErrorLaunchFailure, hazard::trap, site, nullptr, "the kernel called __trap()");
}

// What assert() calls, by way of a macro on the command line.
extern "C" [[noreturn]] void __emu_assert_fail(const char* condition, const char* file,
                                               unsigned line, const char* function) {
    emu::Core* c = core();
    if (!c || !c->current) {
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
        abort();
    }
    const uint3 block = c->block, thread = c->current->index;
    fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
            file, line, function, block.x, block.y, block.z, thread.x, thread.y, thread.z,
            condition);
    c->fail(cudaErrorAssert, hazard::assertion, {file, int(line)}, nullptr, "assertion `%s` failed",
            condition);
}
