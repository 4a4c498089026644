// mma and ldmatrix: from the registers of 32 lanes to matrices and back.
#include "tensor_cores.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../include/emulator/errors.h"
#include "../include/emulator/tensor_cores.h"
#include "block.h"
#include "block_work.h"
#include "tensor_sum.h"
#include "trace.h"
#include "traffic.h"
#include "watch.h"

namespace emu {
namespace {

struct Rows {  // what a lane brings to ldmatrix
    const char* row;
    uint16_t* matrices;  // 4 times 2 halves: its own
    bool turned;
};

template <class T>
const T& brought(const Exchange& exchange, int lane) {
    return *reinterpret_cast<const T*>(exchange.value[lane]);
}

// Where lane `lane` has element (row, pair + i) of an 8 x 8 matrix: lane / 4, lane % 4 * 2 + i.
constexpr int kRows = 16, kCols = 8;

typedef uint32_t Words __attribute__((vector_size(16)));  // of an Operands: a, or b and a pointer
typedef float FourFloats __attribute__((vector_size(16)));

// Whether there is nothing to multiply, and the sums are as they shall be then: never -0, and
// where one is no number, the one that a tensor core makes.
bool added_zeros(int type, const Operands (&all)[32]) {
    Words in_a = {}, in_b = {}, special_a = {}, special_b = {};
    for (const Operands& share : all) {
        Words a, b;
        memcpy(&a, share.a, sizeof a), memcpy(&b, share.b, sizeof b);
        in_a |= a, special_a |= specials(type, a);
        in_b |= b, special_b |= specials(type, b);
    }
    special_a |= Words{special_b[0], special_b[1], 0, 0};
    if (special_a[0] | special_a[1] | special_a[2] | special_a[3]) return false;
    if (!are_zeros(type, in_a[0] | in_a[1] | in_a[2] | in_a[3]) &&
        !are_zeros(type, in_b[0] | in_b[1]))
        return false;
    for (const Operands& share : all) {
        FourFloats sums;
        memcpy(&sums, share.d, sizeof sums);
        sums += FourFloats{};
        const Words number = (Words)(sums == sums), kept = (Words)sums & number;
        const Words result = kept | (~number & kNoNumber);
        memcpy(share.d, &result, sizeof result);
    }
    return true;
}

// In words of 32 bits, two halves or one float, a lane owns of a (16 rows) and of b (8 rows, its
// columns) words lane % 4 and lane % 4 + 4 of row lane / 4, and of a also those of the row 8 below.
void multiply(unsigned lanes, int type, const Operands (&all)[32]) {
    if (watching())
        counters.tensor_operations +=
            uint64_t(2 * kRows * kCols * depth(type) / 32) * unsigned(__builtin_popcount(lanes));
    if (idle_products() || added_zeros(type, all)) return;
    uint32_t words[8][kCols];  // of b, word by word
    for (int lane = 0; lane < 32; ++lane)
        for (int half = 0; half < 2; ++half)
            words[lane % 4 + 4 * half][lane / 4] = all[lane].b[half];
    ColumnsOfB columns;
    for (int col = 0; col < kCols; ++col)
        spread<kCols>(type, &words[0][col], kCols, &columns.bits[0][col]);
    make_ready(type, columns);
    for (int row = 0; row < kRows; ++row) {
        const int lower = row / 8;
        const Operands* const owners = &all[row % 8 * 4];
        uint32_t of_row[8];
        float sums[kCols];
        for (int col = 0; col < 4; ++col) {
            of_row[col] = owners[col].a[lower], of_row[col + 4] = owners[col].a[2 + lower];
            memcpy(sums + 2 * col, owners[col].d + 2 * lower, 2 * sizeof(float));
        }
        RowOfA factors;
        read_row(type, of_row, factors);
        add_products(type, factors, columns, sums);
        for (int col = 0; col < 4; ++col)
            memcpy(owners[col].d + 2 * lower, sums + 2 * col, 2 * sizeof(float));
    }
}

// The shares of the lanes that are there; of the others zeros.
template <class Get>
void multiply_of(unsigned lanes, int type, Get get) {
    static thread_local float nowhere[4];
    Operands all[32];
    for (int lane = 0; lane < 32; ++lane)
        all[lane] = lanes >> lane & 1 ? get(lane) : Operands{{}, {}, nowhere};
    multiply(lanes, type, all);
}

}  // namespace

void combine_matrices(unsigned lanes, Exchange& exchange) {
    uint16_t elements[4][8][8] = {};  // matrix, row, column
    for (int lane = 0; lane < 32; ++lane)
        if (lanes >> lane & 1)
            memcpy(elements[lane / 8][lane % 8], brought<Rows>(exchange, lane).row, 16);
    for (int lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        const Rows& mine = brought<Rows>(exchange, lane);
        const int first = lane / 4, second = lane % 4 * 2;
        for (int m = 0; m < 4; ++m)
            for (int i = 0; i < 2; ++i)
                mine.matrices[2 * m + i] =
                    mine.turned ? elements[m][second + i][first] : elements[m][first][second + i];
    }
}

void combine_products(unsigned lanes, Exchange& exchange) {
    const int type = brought<Product>(exchange, __builtin_ctz(lanes)).type;
    multiply_of(lanes, type, [&](int lane) { return brought<Product>(exchange, lane).share; });
}

// Each lane takes away how many of its products are done: as many as all lanes have alike.
void combine_batches(unsigned lanes, Exchange& exchange) {
    const Batch& first = brought<Batch>(exchange, __builtin_ctz(lanes));
    int alike = first.count;
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const Batch& batch = brought<Batch>(exchange, __builtin_ctz(rest));
        alike = batch.type == first.type ? std::min(alike, batch.count) : 0;
    }
    for (int i = 0; i < alike; ++i) {
        if (lanes == 0xffffffffu)
            multiply(lanes, first.type, *reinterpret_cast<const Operands(*)[32]>(&first.share(i)));
        else
            multiply_of(lanes, first.type,
                        [&](int lane) { return brought<Batch>(exchange, lane).share(i); });
    }
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        exchange.value[__builtin_ctz(rest)] = uint64_t(alike);
}

}  // namespace emu

using namespace emu;

static inline void need_whole_warp(Core& core, const char* what, EmuSite site) {
    if (core.launch->threads % 32 == 0) return;
    const int lanes = core.launch->threads - core.current_index() / 32 * 32;
    if (lanes < 32)
        core.fail(cudaErrorLaunchFailure, hazard::invalid_mask, site, core.current->pc,
                  "%s is for all 32 lanes of a warp, and of this one the block has %d", what,
                  lanes);
}

extern "C" void emu_load_matrices(unsigned* matrices, const void* row, int turned, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    need_whole_warp(c, "ldmatrix", site);
    if (watching()) watch_access(row, 16, kLoad, c.current->pc);
    trace_access(row, 16, kLoad, c.current->pc);
    if (c.shared.offset(row) == SharedMemory::kElsewhere)
        c.fail(cudaErrorIllegalAddress, hazard::illegal_address, site, c.current->pc,
               "ldmatrix reads shared memory, and this row lies elsewhere");
    Rows mine{static_cast<const char*>(row), reinterpret_cast<uint16_t*>(matrices), turned != 0};
    c.collective(EMU_LOAD_MATRICES, 0xffffffffu, uint64_t(&mine), 0, site);
}

static Batch& batch_of(Core& core) {
    auto& batches = core.work().batches;
    if (!batches) batches.reset(new Batches(size_t(core.launch->threads)));
    return batches->of(size_t(core.current_index()));
}

static void meet_for(Core& core, Product& product, EmuSite site) {
    core.collective(EMU_MMA + product.type, 0xffffffffu, uint64_t(&product), 0, site);
}

static void finish(Core& core, Batch& batch, EmuSite site) {
    uint64_t done = core.collective(EMU_MMAS, 0xffffffffu, uint64_t(&batch), 0, site);
    for (; int(done) < batch.count; ++done) {  // that other lanes have not got
        Product left{batch.type, batch.share(int(done))};
        meet_for(core, left, site);
    }
    batch.count = 0;
}

static void bring(Operands& share, float* d, const void* a, const void* b) {
    // Word by word, as they were written: a wider load would have to wait for the cache.
    const volatile uint32_t *of_a = static_cast<const uint32_t*>(a),
                            *of_b = static_cast<const uint32_t*>(b);
    for (int i = 0; i < 4; ++i) share.a[i] = of_a[i];
    for (int i = 0; i < 2; ++i) share.b[i] = of_b[i];
    share.d = d;
}

static void __attribute__((noinline)) multiply_alone(Core& core, int type, float* d, const void* a,
                                                     const void* b, EmuSite site) {
    need_whole_warp(core, "mma", site);
    Product alone{type, {}};
    bring(alone.share, d, a, b);
    meet_for(core, alone, site);
}

// Each lane comes here for each of its products.
extern "C" void emu_mma(int type, float* d, const void* a, const void* b, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    Batch* const batch = c.current->batch;
    if (!batch) return multiply_alone(c, type, d, a, b, site);
    if (batch->type != type || batch->count == Batch::kMost) {
        if (batch->count) finish(c, *batch, site);
        batch->type = type;
    }
    if (!batch->count) need_whole_warp(c, "mma", site);
    bring(batch->share(batch->count++), d, a, b);
}

extern "C" void emu_begin_products() {
    Core& c = *core();
    c.current->batch = &batch_of(c);
    c.current->batch->count = 0;
}
extern "C" void emu_end_products(EmuSite site) {
    Core& c = *core();
    Batch* const batch = std::exchange(c.current->batch, nullptr);
    if (batch && batch->count) finish(c, *batch, site);
}
