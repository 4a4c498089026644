// Hazards of a watched launch: each told in full when it is first met, since the run may end any
// time, and counted when the launch ends.
#pragma once

#include "watch.h"

namespace emu {

// An access that went wrong; `other` is the access that it conflicts with, if any.
void tell_hazard(const Core& core, const char* kind, const Instruction& in, Kind access,
                 const void* address, const Conflict* other, const char* message = nullptr);
void end_hazards();     // of a launch: how often each was met
void forget_hazards();  // of a run

const char* space_name(Space space);
const char* kind_name(Kind kind);

}  // namespace emu
