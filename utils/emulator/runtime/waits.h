// Who waits where, for the picture of threads that do not meet.
#pragma once

namespace emu {

class Core;
// While a trace is recorded: reports where each thread of the running block waits now.
void report_waits(const Core& core);

}  // namespace emu
