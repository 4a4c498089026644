// Looks for what shuffles brought from nobody in the memory that a launch has left behind.
#include "absent_lanes.h"

#include <cstring>
#include <string>
#include <utility>

#include "hazards.h"
#include "heap.h"
#include "watch.h"

namespace emu {
namespace {

bool any = false;  // in this launch

// The element that holds a value from nobody, or what was made of one by adding to it; "" if none.
std::string find_nobodys(const Allocation& a) {
    for (size_t at = 0; at + 4 <= a.bytes; at += 4) {
        uint32_t word;
        memcpy(&word, a.first + at, 4);
        if ((word | 0x80000000u) != uint32_t(kNobodys)) continue;
        const size_t element = a.element == 1 ? 4 : a.element;
        return (a.name.empty() ? "device memory" : a.name) + "[" + std::to_string(at / element) +
               "]";
    }
    return "";
}

}  // namespace

void absent_lane(const Core& core, int thread, int source) {
    any = true;
    const int other = thread / 32 * 32 + source;
    std::string message = "reads lane " + std::to_string(source) + ", which ";
    if (other >= core.launch->threads)
        message += "the block does not have (it has " + std::to_string(core.launch->threads) +
                   (core.launch->threads == 1 ? " thread)" : " threads)");
    else if (!core.is_live(other)) message += "has left the kernel";
    else message += "takes no part: the mask does not name it";
    tell_meeting(core, hazard::absent_lane, thread, message.c_str());
}

void end_absent_lanes() {
    if (!std::exchange(any, false)) return;
    std::string where;
    heap().each([&](const Allocation& a) {
        if (where.empty() && !a.freed) where = find_nobodys(a);
    });
    if (!where.empty()) certain(hazard::absent_lane, "such a value has got to " + where);
}

}  // namespace emu
