// Hazards of a watched launch: each told in full when it is first met, since the run may end any
// time, and counted when the launch ends.
#pragma once

#include <string>

#include "watch.h"

namespace emu {

// An access that went wrong; `other` is the access that it conflicts with, if any. `thread`: whose
// it was, where that is not the running one.
void tell_hazard(const Core& core, const HazardKind& kind, const Instruction& in, Kind access,
                 const void* address, const Conflict* other, const char* message = nullptr,
                 int thread = -1);
// Of the running launch, of a copy or fill, and of the host, with work of a stream; `allocation`:
// that the address is in, `pc`: of the host's code.
struct Unordered;
void tell_unordered(const Core& core, const Instruction& in, Kind access, const void* address,
                    const Unordered& other);
void tell_unordered_copy(const Allocation& allocation, const void* address, Kind access,
                         const Unordered& other, const void* pc);
void tell_left(const std::string& kernel);  // work that nobody waits for
// Which race an access makes with one before it.
const HazardKind& race_between(Space space, Kind access, const Conflict& other);
// A remark on what a thread does where it waits. It is a hazard only where it turns out that it
// has consequences: certain() says which, of all remarks of a kind in this launch.
void tell_meeting(const Core& core, const HazardKind& kind, int thread, const char* message);
void certain(const HazardKind& kind, const std::string& consequence);
void end_hazards();     // of a launch: how often each was met
void forget_hazards();  // of a run

const char* space_name(Space space);
const char* kind_name(Kind kind);

}  // namespace emu
