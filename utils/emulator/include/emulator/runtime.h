// The door between a kernel's translation unit and the emulator's library, which is compiled once
// and never instrumented.
#pragma once

#include "emulator/types.h"

typedef struct EmuStream* cudaStream_t;

// Header functions that touch memory are part of the line that calls them.
#define EMU_INLINE inline __attribute__((always_inline))

// Where the running thread stands. The library sets them whenever it switches to another thread.
// initial-exec: one instruction to read, also from a library that was loaded late.
#define EMU_TLS __attribute__((tls_model("initial-exec")))
extern __thread uint3 threadIdx EMU_TLS;
extern __thread uint3 blockIdx EMU_TLS;
extern __thread dim3 blockDim EMU_TLS;
extern __thread dim3 gridDim EMU_TLS;
constexpr int warpSize = 32;

extern "C" {
struct EmuSite {  // where in the source a thread asked for something
    const char* file;
    int line;
};

// Runs `body(argument)` once for every thread of the grid.
void emu_launch(const dim3* grid, const dim3* block, size_t shared, cudaStream_t stream,
                const char* kernel, void (*body)(void*), void* argument, EmuSite site);
void emu_cluster(dim3 blocks);  // the calling thread's next launch has clusters of so many
void emu_declare_cluster(const void* place, const char* kernel, dim3 blocks);
void emu_cooperate();  // the calling thread's next launch has all its blocks at once
// Between these no other host thread launches; they nest.
void emu_begin_launch();
void emu_end_launch();

// A block barrier. Returns the number of threads whose predicate was not 0.
enum { EMU_BARRIER_PLAIN, EMU_BARRIER_COUNT };
int emu_barrier(int kind, int predicate, EmuSite site);
void emu_grid_barrier(EmuSite site);  // of a cooperative launch

// A barrier in memory that some of a block's threads arrive at, and wait at apart from that. It is
// told by the phase that it is in.
struct EmuArrivals {
    unsigned expected, pending, phase;
};
void emu_arrivals_init(EmuArrivals* arrivals, unsigned expected);
unsigned emu_arrive(EmuArrivals* arrivals, unsigned count, int drops);  // the phase it arrives in
void emu_await(EmuArrivals* arrivals, unsigned phase, EmuSite site);    // until that phase is over
int emu_has_passed(EmuArrivals* arrivals, unsigned phase);              // and lets others run
// A barrier of the block's threads [first, first + count), and bytes that they may pass values in.
void emu_team_barrier(unsigned first, unsigned count, EmuSite site);
void* emu_team_memory(unsigned first, unsigned count, size_t bytes);
void emu_pause();       // lets the block's other threads run
void emu_fenced();      // after a fence: lets other blocks begin
void emu_cas_failed();  // a compare-and-swap of the running thread: perhaps it waits for others
long long emu_clock();  // in a kernel: nanoseconds; in host code: the C library's clock()

// A warp collective: waits until every named lane has come, then gives each its result.
enum EmuCollective {
    EMU_SYNCWARP,
    EMU_SHUFFLE,    // parameter: the source lane, or -1 for the caller's own value
    EMU_BALLOT,     // value: 0 or 1; result: mask
    EMU_MATCH_ANY,  // result: mask of the lanes that hold the caller's value
    EMU_MATCH_ALL,  // result: the mask where all values agree, else 0
    EMU_REDUCE_ADD,
    EMU_REDUCE_MIN_S,
    EMU_REDUCE_MAX_S,
    EMU_REDUCE_MIN_U,
    EMU_REDUCE_MAX_U,
    EMU_REDUCE_AND,
    EMU_REDUCE_OR,
    EMU_REDUCE_XOR,
    EMU_SHUFFLE_UP,  // a shuffle by another name
    EMU_SHUFFLE_DOWN,
    EMU_SHUFFLE_XOR,
    EMU_LOAD_MATRICES,  // value: the address of what a lane brings, as in all that follow
    EMU_MMA,            // of halves; of the other types in the order of EmuTensorType
    EMU_MMA_BF16,
    EMU_MMA_TF32,
    EMU_MMAS,   // several of these
    EMU_WGMMA,  // of four warps; this and the next two likewise
    EMU_WGMMA_BF16,
    EMU_WGMMA_TF32,
    EMU_WGMMAS,  // several of these; value: how many
    EMU_WGMMA_FENCE,
    EMU_WGMMA_COMMIT,
    EMU_WGMMA_WAIT,  // parameter: the most groups that may be under way
};
void emu_begin_products();
void emu_end_products(EmuSite site);
uint64_t emu_collective(int kind, unsigned mask, uint64_t value, int parameter, EmuSite site);
unsigned emu_active_mask(EmuSite site);
unsigned emu_thread();  // the number of the running thread in its block

// Shared memory of the running block. `key` is one static per declaration (and template instance).
struct EmuSharedKey {
    const char* name;
    size_t size, alignment, element;
    const size_t* extents;  // of the array, outermost first, then a 0
    int slot;               // 0: not seen yet
    EmuSite site;
};
void* emu_shared(EmuSharedKey* key);
void* emu_dynamic_shared(const char* name, size_t element);

[[noreturn]] void emu_trap(EmuSite site);
void emu_note_recursion(const char* function, const void* frame);  // where one that recurs begins

// In an instrumented build.
void emu_note_return();  // the running thread, if it is one of a kernel, has come to a `return;`
// Of the first three the second needs no old value; the last is one more bit, of the block's scope.
enum EmuAtomic { EMU_UPDATE, EMU_EXCHANGE, EMU_COMPARE, EMU_OF_BLOCK = 4 };
void emu_note_atomic(const void* address, size_t bytes, int what);
void emu_note_read_only(const void* address, size_t bytes);  // that is loaded by __ldg
void emu_note_fence();                                       // of the block
void emu_note_range(const void* address, size_t bytes, int writes);
void emu_copy(void* to, const void* from, size_t bytes);  // noted, and done
void emu_fill(void* to, int value, size_t bytes);
void emu_name_next(const char* arguments);                  // of the call that will allocate memory
void emu_note_arguments(const void* copies, size_t bytes);  // of the launch that follows
void emu_note_pointer(const void* pointer, size_t element);  // one of them
}

namespace emu {

constexpr void returns() {
#ifdef EMU_INSTRUMENTED
    if (!__builtin_is_constant_evaluated()) emu_note_return();
#endif
}

struct Here : EmuSite {
    Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) : EmuSite{file, line} {}
};

// Between its begin and its end a thread does nothing but mma, and looks at no sum: the rewriter
// has made sure of that. So the lanes of a warp need to meet only once for all of these.
struct Products {
    EmuSite site;
    explicit Products(Here here = Here()) : site(here) { emu_begin_products(); }
    ~Products() { emu_end_products(site); }
};

// That a kernel of this module has clusters of so many blocks, by its __cluster_dims__.
struct DeclaredCluster {
    DeclaredCluster(const char* kernel, dim3 blocks) { emu_declare_cluster(this, kernel, blocks); }
    ~DeclaredCluster() { emu_declare_cluster(this, nullptr, dim3()); }
};

struct Config {  // what stands between <<< and >>>
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    EmuSite site;
    Config(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr,
           Here here = Here())
        : grid(grid), block(block), shared(shared), stream(stream), site(here) {}
    unsigned most = 0;  // threads a block, by the kernel's __launch_bounds__; 0: as many as any
    Config& within(unsigned threads) {
        most = threads;
        return *this;
    }
    bool beyond() const { return most && uint64_t(block.x) * block.y * block.z > most; }
};

}  // namespace emu
