// Stacks and the switch between them, in the assembler of each processor.
#include "fibre.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace emu {

#if defined(__x86_64__)
asm(R"(
.text
.globl emu_switch
.type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emu_switch, .-emu_switch
.type emu_start, @function
emu_start:
    movq %r12, %rdi
    callq *%rbx
    ud2
.size emu_start, .-emu_start
)");
extern "C" void emu_start();

void* make_context(char* top, void (*entry)(void*), void* argument) {
    void** sp = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
    *--sp = nullptr, *--sp = nullptr;                   // ends a backtrace; keeps the stack aligned
    *--sp = reinterpret_cast<void*>(&emu_start);        // where emu_switch returns to
    *--sp = nullptr;                                    // rbp
    *--sp = reinterpret_cast<void*>(entry);             // rbx
    *--sp = argument;                                   // r12
    *--sp = nullptr, *--sp = nullptr, *--sp = nullptr;  // r13 to r15
    return sp;
}

#elif defined(__aarch64__)
asm(R"(
.text
.globl emu_switch
.type emu_switch, %function
emu_switch:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    ret
.size emu_switch, .-emu_switch
.type emu_start, %function
emu_start:
    mov x0, x20
    blr x19
    brk #1
.size emu_start, .-emu_start
)");
extern "C" void emu_start();

void* make_context(char* top, void (*entry)(void*), void* argument) {
    uintptr_t end = reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15);
    void** sp = reinterpret_cast<void**>(end - 160);
    for (int i = 0; i < 20; ++i) sp[i] = nullptr;
    sp[1] = reinterpret_cast<void*>(&emu_start);  // x30
    sp[2] = reinterpret_cast<void*>(entry);       // x19
    sp[3] = argument;                             // x20
    return sp;
}

#else
#    error "the emulator knows x86-64 and arm64; other processors need emu_switch in fibre.cpp"
#endif

static const size_t kPage = size_t(sysconf(_SC_PAGESIZE));

Stacks::Stacks(int count, bool guarded) : count_(count), guarded_(guarded ? 0 : count) {
    void* memory = mmap(nullptr, kBytes * size_t(count), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("emulator: no address space for the threads' stacks");
        abort();
    }
    base_ = static_cast<char*>(memory);
}

Stacks::~Stacks() { munmap(base_, kBytes * size_t(count_)); }

char* Stacks::top(int i) {
    for (; guarded_ <= i; ++guarded_) mprotect(base_ + kBytes * size_t(guarded_), kPage, PROT_NONE);
    return const_cast<char*>(end(i));
}

bool Stacks::in_guard(const void* address) const {
    return holds(address) && size_t(static_cast<const char*>(address) - base_) % kBytes < kPage;
}

}  // namespace emu
