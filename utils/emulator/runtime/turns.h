// The blocks of a launch on one OS thread: one after the other, as long as none waits for another;
// those that do have turns, beside those that go on.
#pragma once

namespace emu {

struct Launch;

// Takes blocks until none is left or the launch has failed. On every OS thread that works on it.
void run_in_turns(Launch& launch);
// A cooperative launch: all blocks run at once, and wait for each other at its barrier, too.
void run_together(Launch& launch);

}  // namespace emu
