// Where allocations lie in the range, and the table of them all, freed and lent ones too.
#include "heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace emu {
namespace {

constexpr size_t kRange = size_t(1) << 40;  // of addresses: memory is used only where touched
constexpr size_t kPage = 4096;
constexpr size_t kArena = size_t(4) << 30;  // of addresses, for what kernels allocate
constexpr size_t kCarvedGap = 64;
constexpr unsigned char kPoison = 0xff;  // what nobody wrote reads as NaN

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

char* page_of(char* p) {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) & ~(kPage - 1));
}

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

struct Heap::Table {
    std::recursive_mutex mutex;
    std::map<const char*, Allocation> allocations;
};

Heap::Heap() : table_(*new Table) {}

Heap& heap() {
    static Heap* one = new Heap;  // never destroyed: kernels may run while the process ends
    return *one;
}

// Addresses for an allocation, a gap in front of it and one behind.
char* Heap::reserve(size_t bytes) {
    if (!base_) {
        void* range =
            mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) return nullptr;
        base_ = static_cast<char*>(range);
        end_ = base_ + kRange;
        next_.store(base_, std::memory_order_release);
    }
    bytes = up(bytes + kPage, kPage);
    if (size_t(end_ - next_) < bytes + 2 * gap) return nullptr;
    char* page = next_ + gap;
    next_ = page + bytes + gap;
    // 256-byte aligned as on a GPU, but not all at one offset in a page: they would share cache
    // sets.
    return page + table_.allocations.size() * 1280 % kPage;
}

Allocation* Heap::allocate(size_t bytes, const char* name, size_t element, size_t shift) {
    Lock lock(table_.mutex);
    OpenMemory open;
    char* first = reserve(bytes + shift);
    if (!first) return nullptr;
    first += shift;
    char* page = page_of(first);
    size_t pages = up(size_t(first + bytes - page), kPage), around = watched ? gap : 0;
    if (mprotect(page - around, pages + 2 * around, PROT_READ | PROT_WRITE)) return nullptr;
    if (!rehearsed) memset(page, kPoison, pages);
    Allocation& a = table_.allocations[first];
    a.first = first;
    a.bytes = bytes;
    a.name = name ? name : "";
    a.element = element;
    live_ += bytes;
    if (watched) a.written.assign((bytes + 63) / 64, 0);
    else a.all_written = true;
    return &a;
}

bool Heap::free(void* first) {
    Lock lock(table_.mutex);
    auto it = table_.allocations.find(static_cast<char*>(first));
    if (it == table_.allocations.end() || it->second.freed || it->second.lent || it->second.arena)
        return false;
    Allocation& a = it->second;
    a.freed = true;
    live_ -= a.bytes;
    char* page = page_of(a.first);
    size_t pages = up(size_t(a.first + a.bytes - page), kPage);
    madvise(page, pages, MADV_DONTNEED);
    if (!watched) mprotect(page, pages, PROT_NONE);
    return true;
}

Allocation* Heap::carve(size_t bytes) {
    Lock lock(table_.mutex);
    if (!arena_.first) {
        char* first = reserve(kArena);
        if (!first || mprotect(page_of(first), kArena, PROT_READ | PROT_WRITE)) return nullptr;
        arena_.first = page_of(first);
        arena_.bytes = kArena;
    }
    const size_t room = up(bytes + kCarvedGap, 16);
    if (room > kArena - carved_) return nullptr;
    char* first = arena_.first + carved_;
    carved_ += room;
    memset(first, kPoison, bytes);
    Allocation& a = table_.allocations[first];
    a.first = first;
    a.bytes = bytes;
    a.name = "heap";
    a.arena = &arena_;
    a.written.assign((bytes + 63) / 64, 0);
    return &a;
}

bool Heap::give_back(void* first) {
    Lock lock(table_.mutex);
    auto it = table_.allocations.find(static_cast<char*>(first));
    if (it == table_.allocations.end() || !it->second.arena || it->second.freed) return false;
    it->second.freed = true;
    return true;
}

void Heap::lend(const void* first, size_t bytes, const char* name) {
    Lock lock(table_.mutex);
    Allocation& a = table_.allocations[static_cast<const char*>(first)];
    const bool known = a.lent && a.bytes == bytes;
    if (*name) a.name = name;
    if (known) return;
    a = Allocation{};
    a.name = name;
    a.first = static_cast<char*>(const_cast<void*>(first));
    a.bytes = bytes;
    a.lent = a.all_written = true;
}

void Heap::take_back(const void* first) {
    Lock lock(table_.mutex);
    table_.allocations.erase(static_cast<const char*>(first));
}

void Heap::forget() {
    Lock lock(table_.mutex);
    for (auto& [first, a] : table_.allocations)
        if (!a.freed && !a.lent && !a.arena) return;
    for (auto it = table_.allocations.begin(); it != table_.allocations.end();)
        it = it->second.lent ? std::next(it) : table_.allocations.erase(it);
    if (base_) munmap(base_, kRange);
    next_ = nullptr;
    base_ = nullptr;
    end_ = nullptr;
    arena_ = Allocation{};
    carved_ = 0;
}

void Heap::lock() {
    Lock lock(table_.mutex);
    locked_ = true;
    protect(PROT_NONE);
}

void Heap::open(int change) {
    if (!locked_) return;
    Lock lock(table_.mutex);
    const bool was = opened_ > 0;
    opened_ += change;
    if (was != (opened_ > 0)) protect(opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void Heap::protect(int how) {
    if (next_ > base_) mprotect(base_, size_t(next_ - base_), how);
}

Allocation* Heap::at_or_before(const void* address) {
    auto after = table_.allocations.upper_bound(static_cast<const char*>(address));
    return after == table_.allocations.begin() ? nullptr : &std::prev(after)->second;
}

Allocation* Heap::find(const void* address) {
    Lock lock(table_.mutex);
    Allocation* a = at_or_before(address);
    return a && a->holds(address) && !a->freed ? a : nullptr;
}

Allocation* Heap::nearest(const void* address) {
    Lock lock(table_.mutex);
    const char* p = static_cast<const char*>(address);
    Allocation* before = at_or_before(p);
    auto after = table_.allocations.upper_bound(p);
    if (after == table_.allocations.end()) return before;
    if (!before || after->first - p < p - (before->first + before->bytes)) return &after->second;
    return before;
}

void Heap::each(const std::function<void(const Allocation&)>& visit) {
    Lock lock(table_.mutex);
    for (auto& [first, a] : table_.allocations) visit(a);
}

size_t Heap::room(const void* address) {
    Allocation* a = find(address);
    return a ? size_t(a->first + a->bytes - static_cast<const char*>(address)) : 0;
}

void Heap::mark_written(const void* first, size_t bytes) {
    Allocation* a = find(first);
    if (!a || a->all_written) return;
    size_t start = size_t(static_cast<const char*>(first) - a->first);
    if (start == 0 && bytes >= a->bytes) {
        a->all_written = true;
        return;
    }
    for (size_t i = start; i < start + bytes && i < a->bytes; ++i)
        a->written[i / 64] |= uint64_t(1) << i % 64;
}

}  // namespace emu
