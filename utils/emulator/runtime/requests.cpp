#include "requests.h"

#include <algorithm>

namespace emu {

void Totals::add(const Totals& o) {
    requests += o.requests;
    lanes += o.lanes;
    bytes += o.bytes;
    sectors += o.sectors;
    ideal += o.ideal;
    passes += o.passes;
    contended += o.contended;
}

Sectors count_sectors(const uint64_t* addresses, int n, unsigned size) {
    // The usual case: neighbouring lanes at neighbouring addresses.
    bool dense = true;
    for (int i = 1; i < n; ++i) dense &= addresses[i] == addresses[i - 1] + size;
    if (dense) {
        uint64_t bytes = uint64_t(n) * size;
        return {unsigned((addresses[0] + bytes - 1) / 32 - addresses[0] / 32 + 1), unsigned((bytes + 31) / 32)};
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

// One pass over the banks for at most 128 bytes' worth of lanes: the most words that one bank has.
static unsigned conflict_degree(const uint64_t* words, int n) {
    bool same = true, dense = true;
    for (int i = 1; i < n; ++i) {
        same &= words[i] == words[0];
        dense &= words[i] == words[i - 1] + 1;
    }
    if (same || (dense && n <= 32)) return 1;
    uint64_t seen[32][32];
    unsigned count[32] = {}, most = 0;
    for (int i = 0; i < n; ++i) {
        unsigned bank = unsigned(words[i] % 32);
        unsigned k = 0;
        while (k < count[bank] && seen[bank][k] != words[i]) ++k;
        if (k < count[bank]) continue;
        seen[bank][count[bank]++] = words[i];
        most = std::max(most, count[bank]);
    }
    return most;
}

Passes count_passes(const uint64_t* addresses, uint32_t lanes, unsigned size) {
    const int parts = size <= 4 ? 1 : size == 8 ? 2 : 4;
    const int each = 32 / parts, words_each = size <= 4 ? 1 : int(size / 4);
    Passes result{0, 0};
    for (int part = 0; part < parts; ++part) {
        uint64_t words[128];
        int n = 0;
        for (int lane = part * each; lane < (part + 1) * each; ++lane)
            if (lanes >> lane & 1)
                for (int w = 0; w < words_each && n < 128; ++w) words[n++] = addresses[lane] / 4 + uint64_t(w);
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
