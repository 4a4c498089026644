// Copies by a group: done when the call returns, each thread its share. What is read before wait()
// is therefore right here, and no hazard is told.
#pragma once

#include "../cooperative_groups.h"
#include "emulator/copy_share.h"

namespace cooperative_groups {

template <class Group, class T, class Size>
void memcpy_async(const Group& group, T* to, const T* from, const Size& bytes) {
    emu::copy_share(to, from, size_t(bytes), unsigned(group.thread_rank()), unsigned(group.size()));
}
// Of arrays with their numbers of elements: as many as both have.
template <class Group, class T, class To, class From>
void memcpy_async(const Group& group, T* to, const To& room, const T* from, const From& count) {
    const size_t elements = size_t(room) < size_t(count) ? size_t(room) : size_t(count);
    memcpy_async(group, to, from, elements * sizeof(T));
}
template <class Group>
void wait(const Group& group, emu::Here here = emu::Here()) {
    group.sync(here);
}
template <unsigned Stages, class Group>
void wait_prior(const Group& group, emu::Here here = emu::Here()) {
    group.sync(here);
}

}  // namespace cooperative_groups
