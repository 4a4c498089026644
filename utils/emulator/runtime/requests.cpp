// The arithmetic of one request: from the addresses of its lanes to sectors, passes, contention.
#include "requests.h"

#include <algorithm>

namespace emu {

Sectors count_sectors(const uint64_t* addresses, int n, unsigned size) {
    // The usual case: neighbouring lanes at neighbouring addresses.
    bool dense = true;
    for (int i = 1; i < n; ++i) dense &= addresses[i] == addresses[i - 1] + size;
    if (dense) {
        uint64_t bytes = uint64_t(n) * size;
        return {unsigned((addresses[0] + bytes - 1) / 32 - addresses[0] / 32 + 1),
                unsigned((bytes + 31) / 32)};
    }
    uint64_t sorted[32];
    std::copy(addresses, addresses + n, sorted);
    std::sort(sorted, sorted + n);
    uint64_t bytes = 0, end = 0, last = ~uint64_t(0);
    unsigned touched = 0;
    for (int i = 0; i < n; ++i) {
        uint64_t from = std::max(sorted[i], end), to = sorted[i] + size;
        if (to > from) bytes += to - from;
        end = std::max(end, to);
        for (uint64_t sector = sorted[i] / 32; sector <= (to - 1) / 32; ++sector)
            if (last == ~uint64_t(0) || sector > last) ++touched, last = sector;
    }
    return {touched, unsigned((bytes + 31) / 32)};
}

// How many different words the fullest bank has, for words that go in one pass if no two share one.
static unsigned conflict_degree(const uint64_t* words, int n) {
    uint64_t first[32];
    uint32_t taken = 0;
    bool conflict = false;
    for (int i = 0; i < n; ++i) {
        unsigned bank = unsigned(words[i] % 32);
        if (!(taken >> bank & 1)) taken |= 1u << bank, first[bank] = words[i];
        else conflict |= first[bank] != words[i];
    }
    if (!conflict) return 1;
    uint64_t sorted[32];
    std::copy(words, words + n, sorted);
    std::sort(sorted, sorted + n);
    unsigned count[32] = {};
    for (int i = 0; i < n; ++i)
        if (i == 0 || sorted[i] != sorted[i - 1]) ++count[sorted[i] % 32];
    return *std::max_element(count, count + 32);
}

// Whether every lane's partner, its number with one bit turned, has left or wants the same address.
static bool partners_agree(const uint64_t* addresses, uint32_t lanes, unsigned bit) {
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(__builtin_ctz(rest)), partner = lane ^ bit;
        if (lanes >> partner & 1 && addresses[partner] != addresses[lane]) return false;
    }
    return true;
}

// Of each pair of partners that are both there, the lower lane.
static uint32_t one_of_each_pair(uint32_t lanes, unsigned bit) {
    for (unsigned lane = 0; lane < 32; ++lane)
        if (lane & bit && lanes >> (lane ^ bit) & 1) lanes &= ~(1u << lane);
    return lanes;
}

Passes count_passes(const uint64_t* addresses, uint32_t lanes, unsigned size) {
    const int words_each = size <= 4 ? 1 : size == 8 ? 2 : 4;
    int parts = words_each;  // 32 words a pass: a 16-byte access has four
    for (unsigned bit : {1u, 2u}) {
        if (parts == 1 || parts < words_each || !partners_agree(addresses, lanes, bit)) continue;
        parts /= 2;  // pairs count once, so twice as many lanes fit in a pass
        lanes = one_of_each_pair(lanes, bit);
    }
    const int each = 32 / parts;
    Passes result{0, 0};
    for (int part = 0; part < parts; ++part) {
        uint64_t words[32];
        int n = 0;
        for (int lane = part * each; lane < (part + 1) * each; ++lane)
            if (lanes >> lane & 1)
                for (int w = 0; w < words_each; ++w) words[n++] = addresses[lane] / 4 + uint64_t(w);
        if (!n) continue;
        result.actual += conflict_degree(words, n);
        ++result.ideal;
    }
    return result;
}

unsigned count_contended(const uint64_t* addresses, int n) {
    uint64_t sorted[32];
    std::copy(addresses, addresses + n, sorted);
    std::sort(sorted, sorted + n);
    return unsigned(n - (std::unique(sorted, sorted + n) - sorted));
}

}  // namespace emu
