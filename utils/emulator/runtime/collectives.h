// The kinds of warp collectives: what each is called, and what it makes of its lanes' values.
#pragma once

namespace emu {

const char* collective_name(int kind);  // of EmuCollective

}  // namespace emu
