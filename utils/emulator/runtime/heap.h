// Device memory: allocations far apart in a reserved range, so that an address out of bounds lies
// in a gap and never in a neighbour, and freed memory is never handed out again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace emu {

struct Allocation {
    char* first;
    size_t bytes;
    std::string name;    // of the pointer it was made for, where that is known
    size_t element = 1;  // bytes; 1: not known
    bool freed = false;
    bool lent = false;                  // the caller's memory
    bool managed = false;               // the host's too: nobody knows what it has written
    const Allocation* arena = nullptr;  // a kernel's own, by malloc: what it was carved from
    bool constant = false;              // __constant__: kernels may read it
    bool all_written = false;           // nothing in it can be uninitialised
    std::vector<uint64_t> written;      // a bit for each byte, while watched and not all_written

    bool holds(const void* p, size_t n = 1) const {
        return p >= first && static_cast<const char*>(p) + n <= first + bytes;
    }
};

class Heap {
   public:
    Heap();
    // `shift` bytes behind where cudaMalloc would put it, at a multiple of 256.
    Allocation* allocate(size_t bytes, const char* name, size_t element, size_t shift = 0);
    bool free(void* first);
    // What a kernel asks for. Never handed out twice, so that use after free is seen.
    Allocation* carve(size_t bytes);
    bool give_back(void* first);  // what was carved; false for anything else
    // Memory of the caller's, known as device memory from now on.
    void lend(const void* first, size_t bytes, const char* name = "");
    void take_back(const void* first);

    // The live allocation that holds the address; null where there is none.
    Allocation* find(const void* address);
    // The allocation, live or freed, that the address is in or nearest to. Only within the range.
    Allocation* nearest(const void* address);
    bool in_range(const void* address) const {
        // Another thread may be reserving the range: it sets the end of what is used last.
        const char* next = next_.load(std::memory_order_acquire);
        return static_cast<const char*>(address) < next &&
               static_cast<const char*>(address) >= base_.load(std::memory_order_relaxed);
    }
    // Calls visit(allocation) for each, freed and lent ones too.
    void each(const std::function<void(const Allocation&)>& visit);
    size_t room(const void* address);      // bytes from here to the allocation's end; 0: not ours
    size_t live() const { return live_; }  // bytes allocated and not freed
    void forget();  // gives the range back, if every allocation in it has been freed
    void mark_written(const void* first, size_t bytes);

    // From now on host code can neither read nor write it, as on a GPU: but while it is open, to
    // launches and to CUDA's own functions. Watched memory alone.
    void lock();
    bool locked() const { return locked_; }
    void open(int change);

    size_t gap = size_t(64) << 20;  // between allocations, on either side
    bool watched = false;  // gaps are readable and writable: an access there is reported, harmless
    bool rehearsed = false;  // no kernel runs, so nothing reads what nobody wrote: it is free

   private:
    char* reserve(size_t bytes);
    Allocation* at_or_before(const void* address);

    size_t live_ = 0;
    struct Table;  // of the allocations, and its lock
    Table& table_;
    std::atomic<char*> base_ = nullptr, next_ = nullptr;
    char* end_ = nullptr;
    Allocation arena_{};
    size_t carved_ = 0;  // bytes of it
    bool locked_ = false;
    int opened_ = 0;  // by how many at once
    void protect(int how);
};

Heap& heap();

size_t kept_by_kernels();  // bytes of malloc() that no kernel has given back

struct OpenMemory {  // while it lives
    OpenMemory() { heap().open(1); }
    ~OpenMemory() { heap().open(-1); }
};

}  // namespace emu
