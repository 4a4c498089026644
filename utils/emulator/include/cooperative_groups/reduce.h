#pragma once

#include "functional.h"

namespace cooperative_groups {

namespace detail {
// A butterfly for whole powers of two, a walk through the ranks else.
template <class Group, class T, class Operation>
T reduce_lanes(const Group& group, T value, Operation& operation, emu::Here here) {
    const unsigned size = group.size();
    if ((size & (size - 1)) == 0) {
        for (unsigned lanes = size / 2; lanes; lanes /= 2)
            value = operation(value, group.shfl_xor(value, lanes, here));
        return value;
    }
    T result = group.shfl(value, 0, here);
    for (unsigned rank = 1; rank < size; ++rank)
        result = operation(result, group.shfl(value, int(rank), here));
    return result;
}
}  // namespace detail

// Every member gets the result.
template <class Group, class T, class Operation>
T reduce(const Group& group, T value, Operation operation, emu::Here here = emu::Here()) {
    if constexpr (std::is_base_of_v<lanes_group, Group>)
        return detail::reduce_lanes(group, value, operation, here);
    else return group.emu_fold(value, operation, here);
}

}  // namespace cooperative_groups
