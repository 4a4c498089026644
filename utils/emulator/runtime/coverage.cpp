#include "coverage.h"

#include <algorithm>
#include <map>

#include "heap.h"
#include "watch.h"

namespace emu {
namespace {

std::map<const Allocation*, Coverage> coverages;
bool to_host = false, detour = false;  // values came to the host; then something was done with them
bool following = false;
int scattered = 0;  // copies of less than a sector, or of pieces that are so short
constexpr size_t SECTOR = 32;

size_t count(const std::vector<uint64_t>& bits) {
    size_t n = 0;
    for (uint64_t word : bits) n += size_t(__builtin_popcountll(word));
    return n;
}

}  // namespace

void Coverage::set(std::vector<uint64_t>& bits, size_t offset, size_t size) {
    while (size) {
        const size_t at = offset % 64, n = std::min(size, 64 - at);
        bits[offset / 64] |= (n == 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1) << at;
        offset += n;
        size -= n;
    }
}

Coverage& coverage_of(const Allocation& a) {
    Coverage& c = coverages[&a];
    if (c.read.empty()) {
        c.read.resize(a.bytes / 64 + 1);
        c.written.resize(a.bytes / 64 + 1);
    }
    return c;
}

void cover_host_write(const void* first, size_t bytes) {
    detour |= to_host;
    if (!watching()) return;
    const Allocation* a = heap().find(first);
    if (!a) return;
    Coverage& c = coverage_of(*a);
    c.host_wrote = true;
    const size_t offset = size_t(static_cast<const char*>(first) - a->first);
    for (size_t i = offset; i < std::min(offset + bytes, a->bytes); ++i)
        c.written[i / 64] &= ~(uint64_t(1) << i % 64);
}

void cover_to_host() { to_host |= following || watching(); }
void cover_launch() { detour |= to_host; }

void cover_copy(const void* to, const void* from, size_t bytes) {
    scattered += bytes < SECTOR && heap().room(to) && heap().room(from);
}

void follow_values(bool on) {
    following = on;
    if (on) to_host = detour = false;
}

void forget_coverage() {
    coverages.clear();
    to_host = detour = false;
    scattered = 0;
}

}  // namespace emu

using namespace emu;

extern "C" {

// Of the allocation that begins here: bytes that kernels have read, bytes that they were the last
// to write, whether they wrote any, and whether the host did.
void emu_coverage(const void* first, size_t* read, size_t* written, int* kernel, int* host) {
    *read = *written = 0;
    *kernel = *host = 0;
    const Allocation* a = heap().find(first);
    auto known = a ? coverages.find(a) : coverages.end();
    if (known == coverages.end()) return;
    *read = count(known->second.read);
    *written = count(known->second.written);
    *kernel = known->second.kernel_wrote;
    *host = known->second.host_wrote;
}

// Whether values went from the device to the host, and a launch or a copy back followed.
int emu_detour() { return detour; }

// Copies between device memories of a few values, or of pieces that are so short.
int emu_scattered() { return scattered; }

}  // extern "C"
