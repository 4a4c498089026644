#pragma once

#include "functional.h"

namespace cooperative_groups {

// Over the members up to the caller, itself included.
template <class Group, class T, class Operation = plus<T>>
T inclusive_scan(const Group& group, T value, Operation operation = {},
                 emu::Here here = emu::Here()) {
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        T other = group.shfl_up(value, delta, here);
        if (group.thread_rank() >= delta) value = operation(other, value);
    }
    return value;
}
// Over the members before the caller; the first gets T().
template <class Group, class T, class Operation = plus<T>>
T exclusive_scan(const Group& group, T value, Operation operation = {},
                 emu::Here here = emu::Here()) {
    T before = group.shfl_up(inclusive_scan(group, value, operation, here), 1, here);
    return group.thread_rank() == 0 ? T() : before;
}

}  // namespace cooperative_groups
