// Who waits where: for the picture of threads that do not meet, and for the message where nobody
// can go on.
#pragma once

#include <string>

namespace emu {

class Core;
struct Fibre;
struct Meeting;

const char* awaited(const Fibre& fibre);  // such as "__syncthreads"; "" where it waits for nothing

// The end of a sentence; "" where there is none. `named`: files are.
std::string met_before(const Meeting& met, bool named = false);

// While a trace is recorded: reports where each thread of the running block waits now.
void report_waits(const Core& core);

// Every thread waits for something that will not come. Says who waits where, and ends the launch.
[[noreturn]] void report_deadlock(Core& core);

}  // namespace emu
