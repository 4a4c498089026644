// mma and ldmatrix: from the registers of 32 lanes to matrices and back.
#include "tensor_cores.h"

#include <cstring>

#include "../include/emulator/errors.h"
#include "../include/emulator/tensor_cores.h"
#include "block.h"
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

struct Product {  // to mma
    int type;
    float* d;
    const void *a, *b;
};

template <class T>
const T& brought(const Exchange& exchange, int lane) {
    return *reinterpret_cast<const T*>(exchange.value[lane]);
}

// Where lane `lane` has element (row, pair + i) of an 8 x 8 matrix: lane / 4, lane % 4 * 2 + i.
constexpr int kRows = 16, kCols = 8;

uint32_t word(const void* from, int i) { return static_cast<const uint32_t*>(from)[i]; }

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

// In words of 32 bits, two halves or one float, a lane owns of a (16 rows) and of b (8 rows, its
// columns) words lane % 4 and lane % 4 + 4 of row lane / 4, and of a also those of the row 8 below.
void combine_products(unsigned lanes, Exchange& exchange) {
    const int type = brought<Product>(exchange, __builtin_ctz(lanes)).type;
    uint32_t a[kRows][8] = {}, b[8][kCols] = {};  // of b, word by word
    float sums[kRows][kCols] = {};
    auto each_lane = [&](auto visit) {
        for (int lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1) visit(brought<Product>(exchange, lane), lane / 4, lane % 4);
    };
    each_lane([&](const Product& mine, int row, int col) {
        for (int half = 0; half < 2; ++half) {
            a[row][col + 4 * half] = word(mine.a, 2 * half);
            a[row + 8][col + 4 * half] = word(mine.a, 2 * half + 1);
            b[col + 4 * half][row] = word(mine.b, half);
            memcpy(&sums[row + 8 * half][col * 2], mine.d + 2 * half, 2 * sizeof(float));
        }
    });
    ColumnsOfB columns;
    for (int col = 0; col < kCols; ++col)
        spread<kCols>(type, &b[0][col], kCols, &columns.bits[0][col]);
    make_ready(type, columns);
    for (int row = 0; row < kRows; ++row) {
        RowOfA factors;
        spread<1>(type, a[row], 1, factors.bits);
        make_ready(type, factors);
        add_products(type, factors, columns, sums[row]);
    }
    each_lane([&](const Product& mine, int row, int col) {
        for (int half = 0; half < 2; ++half)
            memcpy(mine.d + 2 * half, &sums[row + 8 * half][col * 2], 2 * sizeof(float));
    });
}

}  // namespace emu

using namespace emu;

static void need_whole_warp(Core& core, const char* what, EmuSite site) {
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

extern "C" void emu_mma(int type, float* d, const void* a, const void* b, EmuSite site) {
    Core& c = *core();
    c.current->pc = EMU_CALLER;
    need_whole_warp(c, "mma", site);
    if (watching()) counters.tensor_operations += 2 * kRows * kCols * depth(type) / 32;
    Product mine{type, d, a, b};
    c.collective(EMU_MMA + type, 0xffffffffu, uint64_t(&mine), 0, site);
}
