// What a watched launch costs: the requests of every load, store and atomic, and how often its
// threads met. Knows nothing of who may touch what: that is watch.cpp's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "watch.h"

namespace emu {

struct Counters {  // of a launch
    uint64_t barriers, shuffles, syncwarps;
    uint64_t tensor_operations;                // products and sums of tensor cores
    uint64_t byte_products;                    // by instructions that make four at once
    uint64_t distinct_read, distinct_written;  // bytes of global memory
    // Basic blocks that were begun: by all threads, by the busiest one, by the busiest block's.
    uint64_t steps, thread_steps, block_steps;
    // Bytes of global memory that threads asked for: by all blocks, by the one that asked for most.
    uint64_t loaded, block_loaded;
};
extern Counters counters __attribute__((visibility("hidden")));
bool& idle_products();  // see emu_set_idle_products

const Instruction& instruction(uint16_t id);
Instruction* find_instruction(const void* pc, Space space, Kind kind, size_t size);
inline Instruction& instruction_at(const void* pc, Space space, Kind kind, size_t size) {
    uint64_t key = instruction_key(pc, space);
    Running::Bucket& b = instruction_bucket(key);
    if (__builtin_expect(b.key != key, 0)) b = {key, find_instruction(pc, space, kind, size)};
    return *b.instruction;
}

void begin_traffic();  // of a launch
void count_request(Core& core, Instruction& in, unsigned lane, uint64_t address);
void settle_requests();                  // counts those that the running warp has outstanding
void end_traffic(const Launch& launch);  // reports the launch and its counters
void forget_arrays();                    // that instructions have met

}  // namespace emu
