// Which work of the device is over where other work, or the host, touches the same memory.
//
// Here all work is over when the call that began it returns. On a GPU it is not: a stream orders
// its own work, an event or a wait orders that of two streams, or work and the host. A watched run
// keeps for each piece of work, by stream, how many pieces are over before it begins: a vector
// clock. Only where a program makes a stream or managed memory: else all work is in one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../include/emulator/runtime.h"
#include "shadow.h"

namespace emu {

struct Allocation;

using StreamClock = std::vector<uint32_t>;  // by stream: how many pieces of its work are over

struct Work {                 // a launch; a copy or a fill
    uint32_t stream, number;  // which of the stream's, from 1
    StreamClock over;         // before it begins
    std::string name;         // of the kernel or the function
};

// Who used a word last: works by their place in a list, 0: none; and where in the program.
struct Users {
    struct User {
        uint32_t work;
        Kind kind;
        uint64_t pc;  // 0: of a copy or a fill
        bool operator<(const User& other) const {
            return work != other.work ? work < other.work : pc < other.pc;
        }
    };
    User writer;
    uint32_t readers;  // of those that none is known to come after: the place of their list
    uint32_t split;
};
inline uint32_t split_of(const Users& users) { return users.split; }
inline void divide_record(Users& whole, std::array<Users, 4>& bytes, uint32_t place) {
    bytes.fill(whole);
    whole.split = place;
}

struct Unordered {  // an earlier use that nothing orders before this one
    const Work* work = nullptr;
    Kind kind = kLoad;
    uint64_t pc = 0;
};

extern bool several_streams;  // whether any of this is kept; set by what makes a stream
void begin_launch_in(cudaStream_t stream, const char* kernel);
// What the running launch does to bytes of an allocation, from `offset` on in its arena.
Unordered use_in_stream(const Allocation& whole, size_t offset, size_t size, Kind kind,
                        uint64_t pc);
Unordered use_by_host(const Allocation& whole, size_t offset, size_t size, Kind kind);
// A copy or a fill in a stream, which the host waits for or not. `pc`: of the call.
void copy_in_stream(cudaStream_t stream, const char* function, void* to, const void* from,
                    size_t bytes, bool waits, const void* pc);
void wait_for_all();    // by the host
void forget_streams();  // of a run

}  // namespace emu
