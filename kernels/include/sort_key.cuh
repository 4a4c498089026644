// Keys: an element of a row and its place as one whole number, which sorts as they do. From
// exercise 15.6.
#pragma once

using Key = unsigned long long;

// Larger for the larger value and, of equal ones, for the earlier: as in PyTorch, NaN stands above
// all others, and -0 is 0. Never 0, so that 0 can stand for "none".
__device__ inline Key key_of(float value, int place) {
    unsigned bits = __float_as_uint(value + 0.0f);   // -0 + 0 is 0
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;  // now in the order of the values
    if (isnan(value)) bits = 0xffffffffu;
    return Key(bits) << 32 | ~unsigned(place);
}

// Where the element of a key stands; -1 for none.
__device__ inline int place_of(Key key) { return int(~unsigned(key)); }
