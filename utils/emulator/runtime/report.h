// What went wrong, as one JSON line for the tool that started the program, or as text for a person.
#pragma once

#include <string>

#include "../include/emulator/runtime.h"
#include "hazard_kinds.h"

namespace emu {

struct Where {  // unknown parts stay empty
    const char* kernel = nullptr;
    uint3 block{}, thread{};
    EmuSite site{nullptr, 0};
    const void* pc = nullptr;
    EmuSite other_site{nullptr, 0};  // where another thread waits
    uint3 other_thread{};
    const void* other_pc = nullptr;
};

// Safe to call from a signal handler.
void report(const HazardKind& kind, const Where& where, const char* message);

// A longer event, written whole by end(). Not for signal handlers. Goes nowhere where no tool
// listens.
class Json {
   public:
    void text(const char* name, const char* value);
    void number(const char* name, uint64_t value);
    void integer(const char* name, int64_t value);
    void position(const char* name, uint3 value);
    void numbers(const char* name, const size_t* values);  // a list, up to a 0
    void site(const char* prefix, EmuSite site);           // file and line
    void code(const char* prefix, const void* pc);  // module and offset, for the tool to resolve
    void begin_list(const char* name);
    void end_list();
    void begin_object();
    void end_object();
    void end();

   private:
    void name(const char* prefix, const char* name);
    void quoted(const char* text);
    std::string text_ = "{";
};

}  // namespace emu
