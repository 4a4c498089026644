// Small kernels in one program, each run by its name: `program name`.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

struct Case {
    const char* name;
    void (*run)();
    Case* next;
    static Case*& list() {
        static Case* first = nullptr;
        return first;
    }
    Case(const char* name, void (*run)()) : name(name), run(run), next(list()) { list() = this; }
};

// CASE(kernel, grid, block, arguments) launches the kernel above; CASE_OF(name) { … } is for more.
#define CASE_OF(name)                           \
    static void run_##name();                   \
    static Case case_##name(#name, run_##name); \
    static void run_##name()
#define CASE(kernel, grid, block, ...) \
    CASE_OF(kernel) { kernel<<<grid, block>>>(__VA_ARGS__); }
#define CASE_DYNAMIC(kernel, grid, block, bytes, ...) \
    CASE_OF(kernel) { kernel<<<grid, block, bytes>>>(__VA_ARGS__); }

template <class T>
T* fresh(size_t n) {  // device memory that nobody has written
    T* memory;
    cudaMalloc(&memory, n * sizeof(T));
    return memory;
}
template <class T>
T* zeros(size_t n) {
    T* memory = fresh<T>(n);
    cudaMemset(memory, 0, n * sizeof(T));
    return memory;
}

int main(int argc, char** argv) {
    for (Case* c = Case::list(); c; c = c->next)
        if (argc == 2 && !strcmp(c->name, argv[1])) {
            c->run();
            return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
        }
    printf("no case of that name\n");
    return 9;
}
