// mma and ldmatrix: from the registers of 32 lanes to matrices and back.
#include "tensor_cores.h"

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

// Whether there is nothing to multiply, and the sums are as they shall be then.
template <class Get>
bool added_zeros(unsigned lanes, int type, Get get) {
    uint32_t in_a = 0, in_b = 0, special = 0;
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const Product& mine = get(__builtin_ctz(rest));
        for (uint32_t word : mine.a) in_a |= word, special |= specials(type, word);
        for (uint32_t word : mine.b) in_b |= word, special |= specials(type, word);
    }
    if (special || (!are_zeros(type, in_a) && !are_zeros(type, in_b))) return false;
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        float* const d = get(__builtin_ctz(rest)).d;
        for (int i = 0; i < 4; ++i) d[i] = sum_without_products(d[i]);
    }
    return true;
}

// In words of 32 bits, two halves or one float, a lane owns of a (16 rows) and of b (8 rows, its
// columns) words lane % 4 and lane % 4 + 4 of row lane / 4, and of a also those of the row 8 below.
// get(lane): its Product.
template <class Get>
void multiply(unsigned lanes, Get get) {
    const int type = get(__builtin_ctz(lanes)).type;
    if (added_zeros(lanes, type, get)) return;
    uint32_t a[kRows][8] = {}, b[8][kCols] = {};  // of b, word by word
    float sums[kRows][kCols] = {};
    auto each_lane = [&](auto visit) {
        for (int lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1) visit(get(lane), lane / 4, lane % 4);
    };
    each_lane([&](const Product& mine, int row, int col) {
        for (int half = 0; half < 2; ++half) {
            a[row][col + 4 * half] = mine.a[2 * half];
            a[row + 8][col + 4 * half] = mine.a[2 * half + 1];
            b[col + 4 * half][row] = mine.b[half];
            memcpy(&sums[row + 8 * half][col * 2], mine.d + 2 * half, 2 * sizeof(float));
        }
    });
    ColumnsOfB columns;
    for (int col = 0; col < kCols; ++col)
        spread<kCols>(type, &b[0][col], kCols, &columns.bits[0][col]);
    make_ready(type, columns);
    for (int row = 0; row < kRows; ++row) {
        RowOfA factors;
        read_row(type, a[row], factors);
        add_products(type, factors, columns, sums[row]);
    }
    each_lane([&](const Product& mine, int row, int col) {
        for (int half = 0; half < 2; ++half)
            memcpy(mine.d + 2 * half, &sums[row + 8 * half][col * 2], 2 * sizeof(float));
    });
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
    multiply(lanes, [&](int lane) -> const Product& { return brought<Product>(exchange, lane); });
}

// Each lane takes away how many of its products are done: as many as all lanes have alike.
void combine_batches(unsigned lanes, Exchange& exchange) {
    const Batch& first = brought<Batch>(exchange, __builtin_ctz(lanes));
    auto alike = [&](int i) {
        for (unsigned rest = lanes; rest; rest &= rest - 1) {
            const Batch& batch = brought<Batch>(exchange, __builtin_ctz(rest));
            if (i >= batch.count || batch.products[i].type != first.products[i].type) return false;
        }
        return true;
    };
    uint64_t done = 0;
    for (; alike(int(done)); ++done)
        multiply(lanes, [&](int lane) -> const Product& {
            return brought<Batch>(exchange, lane).products[done];
        });
    for (unsigned rest = lanes; rest; rest &= rest - 1) exchange.value[__builtin_ctz(rest)] = done;
}

}  // namespace emu

using namespace emu;

static inline void need_whole_warp(Core& core, const char* what, EmuSite site) {
    if (core.launch->threads % 32 == 0) return;
    const int lanes = core.launch->threads - core.current_index() / 32 * 32;
    if (lanes < 32)
        core.fail(cudaErrorLaunchFailure, "invalid-mask", site, core.current->pc,
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
        c.fail(cudaErrorIllegalAddress, "illegal-address", site, c.current->pc,
               "ldmatrix reads shared memory, and this row lies elsewhere");
    Rows mine{static_cast<const char*>(row), reinterpret_cast<uint16_t*>(matrices), turned != 0};
    c.collective(EMU_LOAD_MATRICES, 0xffffffffu, uint64_t(&mine), 0, site);
}

static Batch& batch_of(Core& core) {
    auto& batches = core.work().batches;
    if (!batches) batches.reset(new Batch[size_t(core.launch->threads)]);
    return batches[size_t(core.current_index())];
}

static void finish(Core& core, Batch& batch, EmuSite site) {
    uint64_t done = core.collective(EMU_MMAS, 0xffffffffu, uint64_t(&batch), 0, site);
    for (; int(done) < batch.count; ++done) {  // that other lanes have not got
        Product& left = batch.products[done];
        core.collective(EMU_MMA + left.type, 0xffffffffu, uint64_t(&left), 0, site);
    }
    batch.count = 0;
}

extern "C" void emu_mma(int type, float* d, const void* a, const void* b, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    need_whole_warp(c, "mma", site);
    if (watching()) counters.tensor_operations += 2 * kRows * kCols * depth(type) / 32;
    Product alone;
    Batch* const batch = c.current->batch;
    if (batch && batch->count == Batch::kMost) finish(c, *batch, site);
    Product& mine = batch ? batch->products[batch->count++] : alone;
    mine.type = type, mine.d = d;
    memcpy(mine.a, a, sizeof mine.a), memcpy(mine.b, b, sizeof mine.b);
    if (!batch) c.collective(EMU_MMA + type, 0xffffffffu, uint64_t(&mine), 0, site);
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
