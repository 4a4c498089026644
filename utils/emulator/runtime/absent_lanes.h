// Shuffles from lanes that take no part: what they bring is undefined, and may be left unused, as
// behind `if (lane + d < n)`. So it is a hazard only where it is seen to have been used.
#pragma once

#include "block.h"

namespace emu {

void absent_lane(const Core& core, int thread, int source);  // a thread's shuffle, where it waits
void end_absent_lanes();  // of a launch: looks where the values have got to

}  // namespace emu
