// A program that is run whole, with a main() of its own: what its environment asks for, before
// main() begins. Its host code's crashes are reported too.
#include <cstdlib>

#include "faults.h"

extern "C" void emu_set_time_limit(double seconds);
extern "C" void emu_watch_begin();
extern "C" void emu_set_order(unsigned seed);

__attribute__((constructor)) static void begin_program() {
    if (const char* text = getenv("EMU_PROGRAM")) {  // seconds; 0: no limit
        emu::use_signal_stack();
        emu::install_fault_handlers();
        if (double seconds = atof(text); seconds > 0) emu_set_time_limit(seconds);
    }
    if (getenv("EMU_DIAGNOSE")) emu_watch_begin();
    if (const char* text = getenv("EMU_ORDER")) emu_set_order(unsigned(atol(text)));
}
