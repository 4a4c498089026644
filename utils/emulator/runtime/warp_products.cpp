// What a descriptor means, and the life of a product: begun, committed, waited for.
#include "warp_products.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "../include/emulator/errors.h"
#include "../include/emulator/hopper.h"
#include "block.h"
#include "block_work.h"
#include "hazards.h"
#include "registers.h"
#include "tensor_sum.h"
#include "traffic.h"
#include "under_way.h"

namespace emu {
namespace {

constexpr uint32_t kPoison = 0xfffdfdfd;  // NaN

struct LaneRequest {  // by a lane
    int type, n;
    float* d;
    uint64_t a, b;
    const uint32_t* fragment;  // where a is in registers
    int mn, add;
};

enum Step { kFence, kCommit, kWait };

// Rows of 32 bytes in shared memory, as bits 0-13, 16-29, 32-45 and 62-63 of a descriptor say; or
// 16 rows along N.
class Tile {
   public:
    Tile(const SharedMemory& shared, uint64_t descriptor)
        : shared_(shared),
          start_(uint32_t(descriptor & 0x3fff) << 4),
          along_(uint32_t(descriptor >> 16 & 0x3fff) << 4),
          down_(uint32_t(descriptor >> 32 & 0x3fff) << 4),
          swizzle_(uint32_t((4 - (descriptor >> 62)) % 4)) {}  // as CUtensorMapSwizzle has it

    const char* piece(int row, int half) const {  // 16 bytes
        const uint32_t pitch = swizzle_ ? 16u << swizzle_ : 16;
        const uint32_t at = start_ + uint32_t(row / 8) * down_ + uint32_t(row % 8) * pitch +
                            uint32_t(half) * (swizzle_ ? 16 : along_);
        return shared_.of_short(uint32_t(swizzled(at, swizzle_)));
    }
    // Of b that lies along N: 16 bytes of row k, those of 8 columns.
    const char* eight(int k, int columns) const {
        const uint32_t pitch = swizzle_ ? 16u << swizzle_ : 16, wide = pitch / 16;
        const uint32_t chunk = swizzle_ ? along_ : down_, below = swizzle_ ? down_ : along_;
        const uint32_t at = start_ + uint32_t(columns) / wide * chunk + uint32_t(k / 8) * below +
                            uint32_t(k % 8) * pitch + uint32_t(columns) % wide * 16;
        return shared_.of_short(uint32_t(swizzled(at, swizzle_)));
    }
    // The pattern of a swizzle repeats from its own multiples on.
    bool fits() const { return !swizzle_ || (start_ & ~0x7fu) % swizzle_repeats(swizzle_) == 0; }
    uint32_t start() const { return start_; }
    size_t repeats() const { return swizzle_repeats(swizzle_); }

   private:
    const SharedMemory& shared_;
    uint32_t start_, along_, down_, swizzle_;
};

void read_words(const Tile& tile, int row, uint32_t (&words)[8]) {
    memcpy(words, tile.piece(row, 0), 16);
    memcpy(words + 4, tile.piece(row, 1), 16);
}

// Column `col` of b that lies along N: 16 halves.
void read_column(const Tile& tile, int col, uint32_t (&words)[8]) {
    uint16_t halves[16];
    for (int k = 0; k < 16; ++k) memcpy(&halves[k], tile.eight(k, col / 8) + col % 8 * 2, 2);
    memcpy(words, halves, sizeof words);
}

// The columns of tiles that products read while no thread runs, each made ready once for the four
// warps.
class Columns {
   public:
    explicit Columns(const SharedMemory& shared) : shared_(shared) {}
    const std::vector<ColumnsOfB>& of(int type, uint64_t descriptor, bool mn, int n) {
        for (const Read& read : all_)
            if (read.type == type && read.descriptor == descriptor && read.mn == mn &&
                int(read.columns.size()) == n / kAtOnce)
                return read.columns;
        all_.push_back({type, descriptor, mn, std::vector<ColumnsOfB>(size_t(n / kAtOnce))});
        const Tile tile(shared_, descriptor);
        for (int col = 0; col < n; ++col) {
            uint32_t words[8];
            if (mn) read_column(tile, col, words);
            else read_words(tile, col, words);
            spread<kAtOnce>(type, words, 1,
                            &all_.back().columns[size_t(col / kAtOnce)].bits[0][col % kAtOnce]);
        }
        for (ColumnsOfB& columns : all_.back().columns) make_ready(type, columns);
        return all_.back().columns;
    }

   private:
    struct Read {
        int type;
        uint64_t descriptor;
        bool mn;
        std::vector<ColumnsOfB> columns;
    };
    const SharedMemory& shared_;
    std::deque<Read> all_;
};

void multiply(Core& core, int warp, const WarpProducts::Product& p, WarpProducts::Sums& sums,
              Columns& read) {
    const Tile tile(core.shared, p.a);
    const std::vector<ColumnsOfB>& columns = read.of(p.type, p.b, p.mn, sums.n);
    if (!p.add) std::fill(sums.values.begin(), sums.values.end(), 0.0f);
    if (idle_products()) return;
    for (int row = 0; row < 16; ++row) {
        uint32_t words[8];
        if (p.rows) std::copy_n((*p.rows)[size_t(row)].begin(), 8, words);
        else read_words(tile, warp % 4 * 16 + row, words);
        RowOfA factors;
        read_row(p.type, words, factors);
        float* to = &sums.values[size_t(row * sums.n)];
        for (const ColumnsOfB& eight : columns) {
            add_products(p.type, factors, eight, to);
            to += kAtOnce;
        }
    }
}

// Calls visit(register, value) for each that a lane owns: see hopper.cuh.
template <class Visit>
void each_register(WarpProducts::Sums& sums, int lane, Visit visit) {
    for (int i = 0; i < sums.n / 2; ++i) {
        const int row = 8 * (i / 2 % 2) + lane / 4, col = 8 * (i / 4) + lane % 4 * 2 + i % 2;
        visit(sums.registers[lane][i], sums.values[size_t(row * sums.n + col)]);
    }
}

void tell_products(Core& core, int warp, const HazardKind& kind, const void* pc,
                   const char* message, const void* address) {
    if (watching())
        tell_hazard(core, kind, instruction_at(pc, kShared, kLoad, 16), kLoad, address, nullptr,
                    message, 32 * warp);
}

// The sums in these registers; new ones where a product names them for the first time.
WarpProducts::Sums& sums_of(WarpProducts& mine, const LaneRequest (&requests)[32]) {
    const LaneRequest& first = requests[0];
    for (WarpProducts::Sums& sums : mine.sums)
        if (sums.registers[0] == first.d && sums.n == first.n) return sums;
    WarpProducts::Sums& sums = mine.sums.emplace_back();
    sums.n = first.n;
    for (int lane = 0; lane < 32; ++lane) sums.registers[lane] = requests[lane].d;
    sums.values.resize(size_t(16 * first.n));
    return sums;
}

// The registers of each lane that hold rows of a; known from the first product on that reads them.
WarpProducts::Fragment& fragment_of(WarpProducts& mine, const LaneRequest (&requests)[32]) {
    for (WarpProducts::Fragment& fragment : mine.fragments)
        if (fragment.registers[0] == requests[0].fragment) return fragment;
    WarpProducts::Fragment& fragment = mine.fragments.emplace_back();
    for (int lane = 0; lane < 32; ++lane) fragment.registers[lane] = requests[lane].fragment;
    return fragment;
}

// As operands of mma.m16n8k16 lie: a word is two neighbours along k.
std::unique_ptr<WarpProducts::Rows> rows_of(const WarpProducts::Fragment& fragment) {
    auto rows = std::make_unique<WarpProducts::Rows>();
    for (size_t lane = 0; lane < 32; ++lane)
        for (size_t i = 0; i < 4; ++i)
            (*rows)[lane / 4 + 8 * (i % 2)][lane % 4 + 4 * (i / 2)] = fragment.registers[lane][i];
    return rows;
}

void check_fence(Core& core, int warp, WarpProducts& mine, bool& touched, const void* address) {
    if (!mine.fenced || touched)
        tell_products(
            core, warp, hazard::missing_fence_of_registers, mine.pc,
            mine.fenced ? "its registers were used since wgmma_fence() was last called"
                        : "no wgmma_fence() was called before the first product uses its registers",
            address);
    mine.fenced = true;
    touched = false;
}

void check_place(Core& core, int warp, const void* pc, const Tile& tile) {
    if (tile.fits()) return;
    const std::string text = "the tile lies at byte " + std::to_string(tile.start()) +
                             " of shared memory; one that is swizzled begins at a multiple of " +
                             std::to_string(tile.repeats());
    tell_products(core, warp, hazard::invalid_descriptor, pc, text.c_str(), tile.piece(0, 0));
}

// Takes the sums out of their registers, which hold NaN until their warp has waited.
void hold(int warp, WarpProducts::Sums& sums, const void* pc) {
    if (!sums.held)
        for (int lane = 0; lane < 32; ++lane)
            each_register(sums, lane, [](float& in, float& value) {
                value = in;
                memcpy(&in, &kPoison, sizeof in);
            });
    for (int lane = 0; lane < 32; ++lane)
        hold_registers(32 * warp + lane, sums.registers[lane], size_t(sums.n / 2), pc);
}

// Reads 16 rows of a, unless these are in registers, and all of b, after what any lane of the warp
// knows of.
AsyncOperation* begin_reads(const WarpProducts& mine, int warp, const Tile* a, const Tile& b,
                            bool mn, int n) {
    if (!running.core) return nullptr;
    std::vector<Part> parts;
    for (int half = 0; half < 2; ++half) {
        for (int row = 0; a && row < 16; ++row)
            parts.push_back({a->piece(warp % 4 * 16 + row, half), 16});
        for (int row = 0; !mn && row < n; ++row) parts.push_back({b.piece(row, half), 16});
    }
    for (int k = 0; mn && k < 16; ++k)
        for (int columns = 0; columns < n / 8; ++columns)
            parts.push_back({b.eight(k, columns), 16});
    Clock clock;
    for (int lane = 0; lane < 32; ++lane)
        if (const uint16_t* known = known_to(32 * warp + lane)) clock.join(known, order_parties());
    clock.join(knowledge(running.me));
    return begin_operation(uint16_t(kProducts + warp), mine.group, kLoad, mine.pc, std::move(parts),
                           &clock);
}

void begin(Core& core, int warp, const LaneRequest (&requests)[32]) {
    WarpProducts& mine = core.work().products[size_t(warp)];
    const LaneRequest& first = requests[0];
    WarpProducts::Sums& sums = sums_of(mine, requests);
    const Tile a(core.shared, first.a), b(core.shared, first.b);
    check_fence(core, warp, mine, sums.touched, b.piece(0, 0));
    std::unique_ptr<WarpProducts::Rows> rows;
    if (first.fragment) {
        WarpProducts::Fragment& fragment = fragment_of(mine, requests);
        check_fence(core, warp, mine, fragment.touched, b.piece(0, 0));
        rows = rows_of(fragment);
        fragment.held = true;
        fragment.newest = mine.group;
        for (int lane = 0; lane < 32; ++lane)
            hold_registers(32 * warp + lane, fragment.registers[lane], 4, mine.pc);
    } else {
        check_place(core, warp, mine.pc, a);
    }
    check_place(core, warp, mine.pc, b);
    hold(warp, sums, mine.pc);
    AsyncOperation* operation = begin_reads(mine, warp, rows ? nullptr : &a, b, first.mn, sums.n);
    sums.pc = mine.pc;
    sums.held = true;
    sums.newest = mine.group;
    sums.products.push_back({first.type, first.a, first.b, first.mn != 0, std::move(rows),
                             first.add != 0, mine.group, operation});
    ++mine.begun;
}

void commit(WarpProducts& mine) {
    for (WarpProducts::Sums& sums : mine.sums)
        for (WarpProducts::Product& p : sums.products)
            if (p.operation) p.operation->committed = true;
    ++mine.group;
}

// Whether the other warps of the four have committed what the running thread waits for.
bool have_committed(Core& core, int most) {
    auto& products = core.work().products;
    const size_t warp = size_t(core.current_index()) / 32, first = warp / 4 * 4;
    const int last = products[warp].group - 1 - most;
    for (size_t other = first; other < first + 4; ++other)
        if (products[other].group <= last) return false;
    return true;
}

// Of the four warps: all products up to a group are over.
void complete(Core& core, int first_warp, int last) {
    Columns read(core.shared);
    for (int warp = first_warp; warp < first_warp + 4; ++warp)
        for (WarpProducts::Sums& sums : core.work().products[size_t(warp)].sums)
            while (!sums.products.empty() && sums.products.front().group <= last) {
                multiply(core, warp, sums.products.front(), sums, read);
                end_operation(sums.products.front().operation);
                sums.products.pop_front();
            }
}

void wait(Core& core, int warp, int most) {
    WarpProducts& mine = core.work().products[size_t(warp)];
    const int last = mine.group - 1 - most, first_warp = warp / 4 * 4;
    complete(core, first_warp, last);
    for (WarpProducts::Sums& sums : mine.sums) {
        if (!sums.held) continue;
        if (sums.newest > last) {
            for (WarpProducts::Product& p : sums.products)
                if (p.operation && !p.operation->committed) p.operation->waited_past = true;
            if (sums.newest == mine.group) neglect_registers(32 * warp);
            continue;
        }
        sums.held = false;
        for (int lane = 0; lane < 32; ++lane) {
            release_registers(32 * warp + lane, sums.registers[lane]);
            each_register(sums, lane, [](float& in, float& value) { in = value; });
        }
    }
    for (WarpProducts::Fragment& fragment : mine.fragments) {
        if (!fragment.held || fragment.newest > last) continue;
        fragment.held = false;
        for (int lane = 0; lane < 32; ++lane)
            release_registers(32 * warp + lane, fragment.registers[lane]);
    }
    if (!running.core || last <= 0) return;
    for (int lane = 0; lane < 32; ++lane)
        for (int other = first_warp; other < first_warp + 4; ++other)
            learn(32 * warp + lane, uint16_t(kProducts + other), uint16_t(last));
}

}  // namespace

// The last lane of a warp has come: it acts for all of them.
void combine_warpgroup(unsigned lanes, Exchange& exchange) {
    if (lanes != 0xffffffffu) return;  // others have left the kernel: that is told of elsewhere
    Core& c = *core();
    const int warp = c.collective_warp();
    const int kind = c.fibre(32 * warp).kind;
    WarpProducts& mine = c.work().products[size_t(warp)];
    mine.pc = c.fibre(32 * warp).pc;
    mine.site = c.fibre(32 * warp).site;
    if (kind == EMU_WGMMA_FENCE) {
        mine.fenced = true;
        for (WarpProducts::Sums& sums : mine.sums) sums.touched = false;
        for (WarpProducts::Fragment& fragment : mine.fragments) fragment.touched = false;
    } else if (kind == EMU_WGMMA_COMMIT) {
        commit(mine);
        c.wake(Waits::kWarpgroup, &c.work().products[size_t(warp / 4 * 4)]);
    } else if (kind == EMU_WGMMA_WAIT) {
        wait(c, warp, exchange.parameter[0]);
    } else {
        LaneRequest requests[32];
        for (int lane = 0; lane < 32; ++lane)
            requests[lane] = *reinterpret_cast<const LaneRequest*>(exchange.value[lane]);
        begin(c, warp, requests);
    }
}

void touch_registers(Core& core, int thread, const void* registers) {
    if (!core.has_work()) return;
    WarpProducts& mine = core.work().products[size_t(thread / 32)];
    for (WarpProducts::Sums& sums : mine.sums)
        if (sums.registers[thread % 32] == registers) sums.touched = true;
    for (WarpProducts::Fragment& fragment : mine.fragments)
        if (fragment.registers[thread % 32] == registers) fragment.touched = true;
}

void end_products(Core& core) {
    auto& warps = core.work().products;
    for (size_t warp = 0; warp < warps.size(); ++warp) {
        for (const WarpProducts::Sums& sums : warps[warp].sums) {
            if (!sums.held) continue;
            const bool committed = sums.newest != warps[warp].group;
            tell_products(core, int(warp),
                          committed ? hazard::missing_wait : hazard::missing_commit, sums.pc,
                          committed ? "the block has ended, and nobody has waited for this product"
                                    : "the block has ended, and this product was never committed",
                          sums.registers[0]);
        }
        const size_t first = warp / 4 * 4;
        if (warps[warp].begun != warps[first].begun) {
            const size_t more = warps[warp].begun > warps[first].begun ? warp : first;
            const std::string text = "warp " + std::to_string(warp) + " has begun " +
                                     std::to_string(warps[warp].begun) + " products, warp " +
                                     std::to_string(first) + " of the same four " +
                                     std::to_string(warps[first].begun);
            tell_products(core, int(more), hazard::broken_warpgroup, warps[more].pc, text.c_str(),
                          nullptr);
            break;
        }
    }
}

}  // namespace emu

using namespace emu;

static void need_whole_warpgroup(Core& core, EmuSite site) {
    const int first = core.current_index() / 128 * 128;
    if (first + 128 > core.launch->threads)
        core.fail(cudaErrorLaunchFailure, hazard::broken_warpgroup, site, core.current->pc,
                  "four whole warps give a product together, and of these the block has %d threads",
                  core.launch->threads - first);
}

static void together(int kind, uint64_t value, int parameter, EmuSite site) {
    Core& c = *core();
    need_whole_warpgroup(c, site);
    c.collective(kind, 0xffffffffu, value, parameter, site);
    watch_acquire();
}

extern "C" void emu_wgmma(int type, int n, float* d, uint64_t a, const unsigned* fragment,
                          uint64_t b, int mn, int add, EmuSite site) {
    core()->current->pc = EMU_CALLER;
    if (watching()) counters.tensor_operations += unsigned(2 * 16 * n * depth(type) / 32);
    LaneRequest request{type, n, d, a, b, fragment, mn, add};
    // wgmma of another shape is another instruction: lanes do not meet there.
    together(EMU_WGMMA + type, uint64_t(&request), n, site);
}
extern "C" void emu_wgmma_fence(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    together(EMU_WGMMA_FENCE, 0, 0, site);
}
extern "C" void emu_wgmma_commit(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    together(EMU_WGMMA_COMMIT, 0, 0, site);
}
extern "C" void emu_wgmma_wait(int most, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    need_whole_warpgroup(c, site);
    const size_t first = size_t(c.current_index()) / 128 * 4;
    while (!have_committed(c, most)) c.block_on(Waits::kWarpgroup, &c.work().products[first], site);
    together(EMU_WGMMA_WAIT, 0, most, site);
}
extern "C" unsigned emu_shared_address(const void* pointer, EmuSite site) {
    Core& c = *core();
    if (c.shared.offset(pointer) == SharedMemory::kElsewhere)
        c.fail(cudaErrorIllegalAddress, hazard::illegal_address, site, EMU_CALLER,
               "this address does not lie in shared memory");
    return c.shared.short_address(pointer);
}
