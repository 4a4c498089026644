// Where a block's shared arrays lie, and which of them holds an address.
#include "shared_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "watch.h"

namespace emu {

SharedMemory::SharedMemory() {
    void* range = mmap(nullptr, kGap + kSpan, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        perror("emulator: no address space for shared memory");
        abort();
    }
    memory_ = static_cast<char*>(range) + kGap;
}

SharedMemory::~SharedMemory() { munmap(memory_ - kGap, kGap + kSpan); }

void SharedMemory::begin_block(size_t dynamic_bytes) {
    ++block_;
    dynamic_bytes_ = dynamic_bytes;
    static_bytes_ = end_ = 0;
    last_ = Slot{};
    dynamic_name = nullptr;
    // What nobody wrote reads as NaN, so that it shows in the result.
    if (dynamic_bytes) memset(memory_ + kDynamicAt, 0xff, dynamic_bytes);
}

// Declarations are numbered by all cores together, from 1: the number is the slot's in each.
static int number(EmuSharedKey* key) {
    static std::atomic<int> numbers{0};
    int known = __atomic_load_n(&key->slot, __ATOMIC_RELAXED);
    if (known) return known;
    int fresh = ++numbers;
    return __atomic_compare_exchange_n(&key->slot, &known, fresh, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? fresh
               : known;
}

void* SharedMemory::array(EmuSharedKey* key) {
    const size_t slot = size_t(number(key));
    if (slot >= slots_.size()) slots_.resize(slot + 16);
    if (slots_[slot].block != block_) {
        if (static_bytes_with(*key) > kStaticShared) return nullptr;
        slots_[slot] = Slot{key, block_, place(*key)};
        memset(memory_ + slots_[slot].offset, 0xff, key->size);
    }
    return memory_ + slots_[slot].offset;
}

size_t SharedMemory::static_bytes_with(const EmuSharedKey& key) const {
    const size_t align = key.alignment < 16 ? 16 : key.alignment;
    return (static_bytes_ + align - 1) / align * align + key.size;
}

// Watched arrays lie apart, so that an access out of bounds is in none; by multiples of 128 bytes,
// so that the banks stay what they are.
size_t SharedMemory::place(const EmuSharedKey& key) {
    static_bytes_ = static_bytes_with(key);
    const size_t align = key.alignment < 128 ? 128 : key.alignment;
    const size_t offset =
        watching() ? (end_ + align - 1) / align * align : static_bytes_ - key.size;
    end_ = offset + key.size + 1024;
    return offset;
}

bool SharedMemory::find(ptrdiff_t offset, size_t size) {
    if (offset >= ptrdiff_t(kDynamicAt))
        return size_t(offset) - kDynamicAt + size <= dynamic_bytes_;
    for (const Slot& slot : slots_)
        if (slot.key && slot.block == block_ && slot.holds(offset, size)) {
            last_ = slot;
            return true;
        }
    return false;
}

}  // namespace emu
