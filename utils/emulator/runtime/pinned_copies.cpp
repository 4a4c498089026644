#include "pinned_copies.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

#include "device.h"
#include "heap.h"
#include "memory.h"
#include "report.h"

namespace emu {
namespace {

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    const void* pc;  // of the call
};
struct Read {
    Copy by;
    size_t hash;
};

// A launch looks at all that copies have read: at so many bytes of either end, of so many copies.
constexpr size_t kLookedAt = 1 << 16, kMost = 64;

std::recursive_mutex mutex;  // host threads may share a device
std::vector<Copy> to_host;   // to be made
std::deque<Read> from_host;  // that nobody has waited for: the last kMost

size_t hash(const Copy& copy) {
    const char* first = static_cast<const char*>(copy.from);
    const size_t bytes = std::min(copy.bytes, kLookedAt);
    auto of = [](const char* from, size_t n) { return std::hash<std::string_view>()({from, n}); };
    return of(first, bytes) + 31 * of(first + copy.bytes - bytes, bytes);
}

void refuse_changes() {
    for (const Read& read : from_host) {
        if (hash(read.by) == read.hash) continue;
        Where where;
        where.pc = read.by.pc;
        report(hazard::race_with_copy, where,
               "the host has written to pinned memory that this copy may still read");
        set_error(cudaErrorLaunchFailure);
        return from_host.clear();
    }
}

}  // namespace

void copy_pinned(void* to, const void* from, size_t bytes, const void* pc) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    const Copy copy{to, from, bytes, pc};
    if (heap().room(from)) return to_host.push_back(copy);
    copy_now(to, from, bytes);
    if (from_host.size() == kMost) from_host.pop_front();
    from_host.push_back({copy, hash(copy)});
}

void finish_copies() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    refuse_changes();
    for (const Copy& copy : to_host) copy_now(copy.to, copy.from, copy.bytes);
    if (!to_host.empty()) pinned_memory_may_change();
    to_host.clear();
}

void pinned_memory_may_change() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    for (Read& read : from_host) read.hash = hash(read.by);
}

void host_has_waited() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    finish_copies();
    from_host.clear();
}

}  // namespace emu

extern "C" {

void emu_host_has_waited() { emu::host_has_waited(); }
// By who called a launcher and looks at its results. The launcher's next call may find that nobody
// has waited since this one.
cudaError_t emu_results_are_there() {
    emu::finish_copies();
    return emu::device_fault();
}

}  // extern "C"
