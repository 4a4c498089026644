// A block's shared memory: its static arrays, then from kDynamicAt its dynamic array, with room
// before, between and behind that belongs to nobody. Knows offsets and sizes, and nothing of the
// threads that use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../include/emulator/runtime.h"

namespace emu {

constexpr size_t kStaticShared = 48 * 1024;    // bytes that nvcc allows in all
constexpr size_t kDynamicShared = 227 * 1024;  // bytes that a launch may ask for

class SharedMemory {
   public:
    static constexpr size_t kGap = size_t(1) << 20;  // before it
    static constexpr size_t kDynamicAt = size_t(2) << 20;
    static constexpr size_t kSpan = kDynamicAt + (size_t(1) << 20);
    static constexpr ptrdiff_t kElsewhere = PTRDIFF_MIN;  // no offset in it

    SharedMemory();
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    void begin_block(size_t dynamic_bytes);

    // The running block's array, laid out when a thread first asks for it. Null where it is more
    // than there is.
    void* array(EmuSharedKey* key);
    void* dynamic_array(const char* name, size_t element) {
        dynamic_name = name;
        dynamic_element = element;
        return memory_ + kDynamicAt;
    }
    size_t static_bytes() const { return static_bytes_; }  // so far, as a GPU would count them
    size_t static_bytes_with(const EmuSharedKey& key) const;

    // Of an address, negative in the gap before; or kElsewhere.
    ptrdiff_t offset(const void* address) const {
        ptrdiff_t at = static_cast<const char*>(address) - memory_;
        return at >= -ptrdiff_t(kGap) && at < ptrdiff_t(kSpan) ? at : kElsewhere;
    }
    // As instructions that ask for one in 18 bits have it: the dynamic array, then the static ones.
    uint32_t short_address(const void* address) const {
        const ptrdiff_t at = offset(address);
        const ptrdiff_t in_all = at >= ptrdiff_t(kDynamicAt) ? at - ptrdiff_t(kDynamicAt)
                                                             : at + ptrdiff_t(dynamic_room());
        return uint32_t(in_all + kReserved) & 0x3ffff;
    }
    const char* of_short(uint32_t address) const {
        const size_t at = address - kReserved;
        return at < dynamic_room() ? memory_ + kDynamicAt + at : memory_ + at - dynamic_room();
    }
    char* at(ptrdiff_t offset) const { return memory_ + offset; }
    bool in_array(ptrdiff_t offset, size_t size) {
        return (last_.key && last_.holds(offset, size)) || find(offset, size);
    }
    // The array that in_array found last.
    const char* last_array(size_t* bytes) const {
        *bytes = last_.key ? last_.key->size : 0;
        return memory_ + last_.offset;
    }
    // Calls visit(key, offset) for each static array of the running block.
    template <class Visit>
    void each_array(Visit visit) const {
        for (const Slot& slot : slots_)
            if (slot.key && slot.block == block_) visit(*slot.key, slot.offset);
    }

    const char* dynamic_name = nullptr;  // of the array that the kernel declared
    size_t dynamic_element = 0;

   private:
    static constexpr size_t kReserved = 1024;  // bytes that a block has no use of
    size_t dynamic_room() const { return (dynamic_bytes_ + 2047) / 1024 * 1024; }
    struct Slot {
        const EmuSharedKey* key;
        uint64_t block;  // serial of the block that laid it out
        size_t offset;
        bool holds(ptrdiff_t at, size_t size) const {
            return at >= ptrdiff_t(offset) && size_t(at) + size <= offset + key->size;
        }
    };
    bool find(ptrdiff_t offset, size_t size);
    size_t place(const EmuSharedKey& key);

    char* memory_;
    uint64_t block_ = 0;  // serial, from 1
    size_t dynamic_bytes_ = 0;
    size_t static_bytes_ = 0;
    size_t end_ = 0;  // offset: watched arrays have gaps between them
    Slot last_{};
    std::vector<Slot> slots_;
};

}  // namespace emu
