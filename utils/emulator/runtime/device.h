// The pretended device: its last error, its limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../include/emulator/errors.h"

namespace emu {

// What an API function returns: a failure is remembered as the last error, and after a fault every
// call returns that.
cudaError_t result(cudaError_t error);
void set_error(cudaError_t error);  // by a launch
bool device_lost();                 // after a fault, until the process ends
cudaError_t device_fault();         // cudaSuccess where there was none
// What nvcc refuses to compile in a kernel ends the launch here. `pc`: in the caller.
void for_the_host(const char* function, const void* pc);

// As a GPU of the pretended kind has them.
int multiprocessors();                     // as many as a run asked for
constexpr int kMostMultiprocessors = 132;  // of an H100
constexpr int kResidentThreads = 2048;     // on a multiprocessor
constexpr uint64_t kResidentBlocks = 32;   // likewise

size_t total_memory();  // bytes
size_t dynamic_shared_limit();

}  // namespace emu
