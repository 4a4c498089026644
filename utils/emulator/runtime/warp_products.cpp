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

constexpr uint32_t kPoison[2] = {0xfffdfdfd, 0xfffdfdfd};  // NaN

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

// Columns of b from 8 * `eight` on, made ready; such that lie along N have 16 halves each.
void read_columns(const Tile& tile, int type, bool mn, int eight, ColumnsOfB& columns) {
    if (mn) {
        for (int k = 0; k < kDeepest; ++k) {
            uint16_t halves[kAtOnce];
            memcpy(halves, tile.eight(k, eight), sizeof halves);
            std::copy_n(halves, kAtOnce, columns.bits[k]);
        }
    } else {
        for (int col = 0; col < kAtOnce; ++col) {
            uint32_t words[8];
            read_words(tile, kAtOnce * eight + col, words);
            spread<kAtOnce>(type, words, 1, &columns.bits[0][col]);
        }
    }
    make_ready(type, columns);
}

// The columns of tiles that products read while no thread runs, each made ready once for the four
// warps.
class Columns {
   public:
    struct Read {
        int type;
        uint64_t descriptor;
        bool mn;
        std::vector<ColumnsOfB> columns;
        int32_t most;  // of their exponents
    };
    explicit Columns(const SharedMemory& shared) : shared_(shared) {}
    const Read& of(int type, uint64_t descriptor, bool mn, int n) {
        for (const Read& read : all_)
            if (read.type == type && read.descriptor == descriptor && read.mn == mn &&
                int(read.columns.size()) == n / kAtOnce)
                return read;
        Read& read = all_.emplace_back(Read{type, descriptor, mn, {}, kNothing});
        read.columns.resize(size_t(n / kAtOnce));
        const Tile tile(shared_, descriptor);
        for (int i = 0; i < n / kAtOnce; ++i) {
            ColumnsOfB& columns = read.columns[size_t(i)];
            read_columns(tile, type, mn, i, columns);
            read.most = std::max(read.most, columns.most);
        }
        return read;
    }

   private:
    const SharedMemory& shared_;
    std::deque<Read> all_;
};

void multiply(Core& core, int warp, const WarpProducts::Product& p, WarpProducts::Sums& sums,
              Columns& read) {
    const Tile tile(core.shared, p.a);
    const Columns::Read& b = read.of(p.type, p.b, p.mn, sums.n);
    if (!p.add) std::fill(sums.values.begin(), sums.values.end(), 0.0f);
    if (idle_products()) return;
    for (int row = 0; row < 16; ++row) {
        uint32_t words[8];
        if (p.rows) std::copy_n((*p.rows)[size_t(row)].begin(), 8, words);
        else read_words(tile, warp % 4 * 16 + row, words);
        RowOfA factors;
        read_row(p.type, words, factors);
        float* to = &sums.values[size_t(row * sums.n)];
        if (factors.most == kNothing && b.most < kInfinite) {  // beyond the edge of a matrix
            add_zeros(to, sums.n);
            continue;
        }
        for (const ColumnsOfB& eight : b.columns) {
            add_products(p.type, factors, eight, to);
            to += kAtOnce;
        }
    }
}

// Calls visit(registers, values) for each pair of neighbours that a lane owns: see hopper.cuh.
template <class Visit>
void each_pair(WarpProducts::Sums& sums, int lane, Visit visit) {
    float* const upper = &sums.values[size_t(lane / 4 * sums.n + lane % 4 * 2)];
    float* const lower = upper + 8 * sums.n;
    float* in = sums.registers[lane];
    for (int col = 0; col < sums.n; col += 8, in += 4) {
        visit(in, upper + col);
        visit(in + 2, lower + col);
    }
}

void tell_products(Core& core, int warp, const HazardKind& kind, const void* pc,
                   const char* message, const void* address) {
    if (watching())
        tell_hazard(core, kind, instruction_at(pc, kShared, kLoad, 16), kLoad, address, nullptr,
                    message, 32 * warp);
}

// The sums in these registers of a lane; new ones where a product names them for the first time.
WarpProducts::Sums& sums_of(WarpProducts& mine, int lane, const LaneRequest& request) {
    WarpProducts::Sums* next = nullptr;  // that other lanes have named, and this one has not
    for (WarpProducts::Sums& sums : mine.sums) {
        if (sums.n != request.n) continue;
        if (sums.registers[lane] == request.d) return sums;
        if (!next && !sums.registers[lane]) next = &sums;
    }
    if (!next) {
        next = &mine.sums.emplace_back();
        next->n = request.n;
        next->values.resize(size_t(16 * request.n));
    }
    next->registers[lane] = request.d;
    return *next;
}

// Takes a lane's sums out of its registers, which hold NaN until its warp has waited.
WarpProducts::Sums& take(WarpProducts& mine, int lane, const LaneRequest& request) {
    WarpProducts::Sums& sums = sums_of(mine, lane, request);
    if (!(sums.taken >> lane & 1))
        each_pair(sums, lane, [](float* in, float* values) {
            memcpy(values, in, 8);
            memcpy(in, kPoison, 8);
        });
    sums.taken |= 1u << lane;
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
std::unique_ptr<WarpProducts::Rows> rows_of(const LaneRequest (&requests)[32]) {
    auto rows = std::make_unique<WarpProducts::Rows>();
    for (size_t lane = 0; lane < 32; ++lane)
        for (size_t i = 0; i < 4; ++i)
            (*rows)[lane / 4 + 8 * (i % 2)][lane % 4 + 4 * (i / 2)] = requests[lane].of_a[i];
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

// All lanes' sums: whoever touches the registers is told of it.
void hold(int warp, WarpProducts& mine, const LaneRequest (&requests)[32], const void* pc) {
    WarpProducts::Sums& sums = take(mine, 0, requests[0]);
    for (int lane = 1; lane < 32; ++lane) take(mine, lane, requests[lane]);
    for (int lane = 0; lane < 32; ++lane)
        hold_registers(32 * warp + lane, sums.registers[lane], size_t(sums.n / 2), pc);
}

// What any lane of the warp has learned to be over, and the running one's own doings.
Clock known_to_warp(WarpProducts& mine, int warp) {
    if (mine.known_changes != order_changes()) {
        mine.known.moments.clear();
        for (int lane = 0; lane < 32; ++lane)
            if (const uint16_t* known = known_to(32 * warp + lane))
                mine.known.join(known, order_parties());
        mine.known_changes = order_changes();
    }
    Clock clock = mine.known;
    add_own(clock, running.me);
    return clock;
}

void add_rows(std::vector<Part>& parts, const Tile& tile, int first, int count) {
    for (int half = 0; half < 2; ++half)
        for (int row = first; row < first + count; ++row)
            parts.push_back({tile.piece(row, half), 16});
}
void add_rows_along_n(std::vector<Part>& parts, const Tile& tile, int count) {
    for (int k = 0; k < 16; ++k)
        for (int columns = 0; columns < count / 8; ++columns)
            parts.push_back({tile.eight(k, columns), 16});
}

// Reads 16 rows of a, unless these are in registers, and all of b, after what any lane of the warp
// knows of.
AsyncOperation* begin_reads(Core& core, int warp, const LaneRequest& request, bool has_rows) {
    if (!running.core) return nullptr;
    auto& products = core.work().products;
    WarpProducts& mine = products[size_t(warp)];
    TileReads& reads = products[size_t(warp / 4 * 4)].reads;
    const Clock clock = known_to_warp(mine, warp);
    const TileReads::Read of_a{request.a, warp % 4 * 16, 16, false, mine.pc, mine.group};
    const TileReads::Read of_b{request.b, 0, request.n, request.mn != 0, mine.pc, mine.group};
    const bool reads_a = !has_rows && !reads.are_clean(of_a, clock);
    const bool reads_b = !reads.are_clean(of_b, clock);
    std::vector<Part> parts;
    if (reads_a) add_rows(parts, Tile(core.shared, request.a), of_a.row, 16);
    if (reads_b && of_b.mn) add_rows_along_n(parts, Tile(core.shared, request.b), request.n);
    else if (reads_b) add_rows(parts, Tile(core.shared, request.b), 0, request.n);
    Met met;
    AsyncOperation* operation = begin_operation(uint16_t(kProducts + warp), mine.group, kLoad,
                                                mine.pc, std::move(parts), &clock, &met);
    if (reads_a) reads.note(of_a, met);
    if (reads_b) reads.note(of_b, met);
    return operation;
}

void begin(Core& core, int warp, const LaneRequest (&requests)[32]) {
    WarpProducts& mine = core.work().products[size_t(warp)];
    const LaneRequest& first = requests[0];
    WarpProducts::Sums& sums = sums_of(mine, 0, first);
    const Tile a(core.shared, first.a), b(core.shared, first.b);
    check_fence(core, warp, mine, sums.touched, b.piece(0, 0));
    std::unique_ptr<WarpProducts::Rows> rows;
    if (first.fragment) {
        WarpProducts::Fragment& fragment = fragment_of(mine, requests);
        check_fence(core, warp, mine, fragment.touched, b.piece(0, 0));
        rows = rows_of(requests);
        fragment.held = true;
        fragment.newest = mine.group;
        for (int lane = 0; lane < 32; ++lane)
            hold_registers(32 * warp + lane, fragment.registers[lane], 4, mine.pc);
    } else {
        check_place(core, warp, mine.pc, a);
    }
    check_place(core, warp, mine.pc, b);
    if (watching()) hold(warp, mine, requests, mine.pc);  // else each lane has, when it asked
    AsyncOperation* operation = begin_reads(core, warp, first, rows != nullptr);
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
        sums.taken = 0;
        for (int lane = 0; lane < 32; ++lane) {
            release_registers(32 * warp + lane, sums.registers[lane]);
            each_pair(sums, lane, [](float* in, float* values) { memcpy(in, values, 8); });
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

bool TileReads::Read::operator==(const Read& other) const {
    return descriptor == other.descriptor && row == other.row && rows == other.rows &&
           mn == other.mn && pc == other.pc && group == other.group;
}

bool TileReads::are_clean(const Read& read, const Clock& clock) {
    if (phase_ != running.me.phase || stores_ != stores_to_tiles()) all_.clear();
    phase_ = running.me.phase, stores_ = stores_to_tiles();
    for (const auto& [known, met] : all_) {
        if (!(known == read)) continue;
        if (!has_fenced(met.fences)) return false;
        for (const Met::Store& store : met.stores)
            if (!clock.holds(store.party, store.moment)) return false;
        return true;
    }
    return false;
}

void TileReads::note(const Read& read, const Met& met) {
    if (met.clean) all_.push_back({read, met});
}

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

// The same of products that have gathered: as many as all lanes have alike. Each takes away that
// number.
void combine_pending(unsigned lanes, Exchange& exchange) {
    int alike = 0;
    if (lanes == 0xffffffffu) {
        Core& c = *core();
        const int warp = c.collective_warp();
        WarpProducts& mine = c.work().products[size_t(warp)];
        const auto& requests = mine.pending->requests;
        const int most = *std::min_element(mine.pending->count, mine.pending->count + 32);
        const auto of_one_type = [&](const LaneRequest(&all)[32]) {
            return std::all_of(all, all + 32,
                               [&](const LaneRequest& r) { return r.type == all[0].type; });
        };
        for (; alike < most && of_one_type(requests[alike]); ++alike) {
            mine.pc = requests[alike][0].pc;
            mine.site = requests[alike][0].site;
            begin(c, warp, requests[alike]);
        }
    }
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        exchange.value[__builtin_ctz(rest)] = uint64_t(alike);
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

static void meet_for(const LaneRequest& request) {
    core()->current->pc = request.pc;
    // wgmma of another shape is another instruction: lanes do not meet there.
    together(EMU_WGMMA + request.type, uint64_t(&request), request.n, request.site);
}

// Begins what the running thread has asked for: with its warp, as far as all lanes have alike.
static void begin_pending(Core& core) {
    const int thread = core.current_index(), lane = thread % 32;
    PendingProducts* const pending = core.work().products[size_t(thread / 32)].pending.get();
    if (!pending || !pending->count[lane]) return;
    const void* const pc = core.current->pc;
    core.current->pc = pending->requests[0][lane].pc;
    uint64_t done = core.collective(EMU_WGMMAS, 0xffffffffu, 0, 0, pending->requests[0][lane].site);
    for (; int(done) < pending->count[lane]; ++done) meet_for(pending->requests[done][lane]);
    pending->count[lane] = 0;
    core.current->pc = pc;
}

extern "C" void emu_wgmma(int type, int n, float* d, uint64_t a, const unsigned* fragment,
                          uint64_t b, int mn, int add, EmuSite site) {
    Core& c = *core();
    LaneRequest request{type, n, d, a, b, fragment, {}, mn, add, site, c.current->pc = EMU_CALLER};
    if (fragment) std::copy_n(fragment, 4, request.of_a);
    if (watching()) {
        counters.tensor_operations += unsigned(2 * 16 * n * depth(type) / 32);
        return meet_for(request);
    }
    need_whole_warpgroup(c, site);
    const int thread = c.current_index(), lane = thread % 32;
    WarpProducts& mine = c.work().products[size_t(thread / 32)];
    if (!mine.pending) mine.pending.reset(new PendingProducts);
    if (mine.pending->count[lane] == PendingProducts::kMost) begin_pending(c);
    take(mine, lane, request);
    mine.pending->requests[mine.pending->count[lane]++][lane] = request;
}
extern "C" void emu_wgmma_fence(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    begin_pending(*core());
    together(EMU_WGMMA_FENCE, 0, 0, site);
}
extern "C" void emu_wgmma_commit(EmuSite site) {
    core()->current->pc = EMU_CALLER;
    begin_pending(*core());
    together(EMU_WGMMA_COMMIT, 0, 0, site);
}
extern "C" void emu_wgmma_wait(int most, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    need_whole_warpgroup(c, site);
    begin_pending(c);
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
