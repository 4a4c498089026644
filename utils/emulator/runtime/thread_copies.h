// The copies that a thread has begun, global -> shared memory, in groups that it waits for.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace emu {

struct AsyncOperation;

struct ThreadCopies {
    struct Copy {
        char* to;
        const char* from;
        int bytes, room;  // that are read; that are written, the rest as zeros
        uint16_t group;
        AsyncOperation* operation;  // null while nobody watches
    };
    std::deque<Copy> under_way;
    uint16_t group = 1;  // that is being made up
};

}  // namespace emu
