// cp.async: nothing is copied before its thread waits for it, as late as can be. So who reads
// earlier reads what was there before.
#include "thread_copies.h"

#include <cstring>

#include "../include/emulator/errors.h"
#include "../include/emulator/tensor_cores.h"
#include "block.h"
#include "block_work.h"
#include "trace.h"
#include "traffic.h"
#include "under_way.h"

using namespace emu;

extern "C" void emu_copy_async(void* to, const void* from, int bytes, int room, EmuSite site) {
    Core& c = *core();
    const void* pc = EMU_CALLER;
    if (c.shared.offset(to) == SharedMemory::kElsewhere)
        c.fail(cudaErrorIllegalAddress, hazard::illegal_address, site, pc,
               "an asynchronous copy goes to shared memory, and its destination lies elsewhere");
    if (bytes < 0 || bytes > room)
        c.fail(cudaErrorLaunchFailure, hazard::invalid_copy, site, pc,
               "a copy of %d bytes, of which %d are to be read", room, bytes);
    trace_access(to, size_t(room), kStore, pc);
    if (bytes) trace_access(from, size_t(bytes), kLoad, pc);
    AsyncOperation* operation = nullptr;
    ThreadCopies& mine = c.work().copies_of(c.current_index());
    if (watching()) {
        if (bytes) watch_copied(from, size_t(bytes), size_t(room), kLoad, pc);
        watch_alignment(to, size_t(room), kStore, pc);
        count_request(c, instruction_at(pc, kShared, kStore, size_t(room)), running.lane,
                      uint64_t(to));
        operation = begin_operation(party_of(Does::kCopies, c.current_index()), mine.group, kStore,
                                    pc, {{to, size_t(room)}});
    }
    mine.under_way.push_back({static_cast<char*>(to), static_cast<const char*>(from), bytes, room,
                              mine.group, operation});
}

extern "C" void emu_commit_copies() {
    ThreadCopies& mine = core()->work().copies_of(core()->current_index());
    for (ThreadCopies::Copy& copy : mine.under_way)
        if (copy.operation) copy.operation->committed = true;
    ++mine.group;
}

extern "C" void emu_wait_for_copies(int most, EmuSite) {
    Core& c = *core();
    ThreadCopies& mine = c.work().copies_of(c.current_index());
    const int last = mine.group - 1 - most;  // the youngest group that has to be there
    while (!mine.under_way.empty() && mine.under_way.front().group <= last) {
        const ThreadCopies::Copy& copy = mine.under_way.front();
        memcpy(copy.to, copy.from, size_t(copy.bytes));
        memset(copy.to + copy.bytes, 0, size_t(copy.room - copy.bytes));
        end_as_stores(copy.operation);
        mine.under_way.pop_front();
    }
    if (!running.core) return;
    for (ThreadCopies::Copy& copy : mine.under_way)
        if (copy.operation && !copy.operation->committed) copy.operation->waited_past = true;
    if (last > 0)
        learn(c.current_index(), party_of(Does::kCopies, c.current_index()), uint16_t(last));
    watch_acquire();
}
