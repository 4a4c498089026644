"""Every hazard that the emulator finds, by kind and variant: what it is, what to do, how to see it.

The keys are those of runtime/hazard_kinds.h, `kind` or `kind/variant`, and those of
`reports.REFINED`; tests/test_hazards.py holds them against the runtime.
"""

from dataclasses import dataclass
from enum import Enum, auto

from utils.ground.errors import Reason


class Picture(Enum):
    """How a hazard is drawn; utils/diagrams/views/hazards.py draws it."""

    NONE = auto()
    RACE = auto()
    UNWRITTEN = auto()
    OUT_OF_BOUNDS = auto()
    WAITS = auto()
    MASK = auto()


@dataclass(frozen=True)
class Hazard:
    """What is told of a hazard of one kind and variant."""

    words: str  # what happened
    advice: str  # what to do, in a sentence or two
    reason: Reason = Reason.LAUNCH_ERROR  # of the verdict
    picture: Picture = Picture.NONE


_ITS_INDEX = (
    "Is this the index that belongs to this array, or one of a longer array? If it is right, guard "
    "this line with an `if` for the threads that have no element; in a loop, look at where it ends."
)
_SAME_MASK = (
    "Every lane that the mask names must make this call with the same mask, and no other lane. Let "
    "them all come: move the call out of the `if` and let nobody return before it. A smaller mask "
    "would leave out their values."
)
HAZARDS = {
    "illegal-address": Hazard(
        "illegal memory access",
        "Compare the index at this line with the array's size, and check that the pointer came "
        "from cudaMalloc and has not been freed.",
        Reason.OUT_OF_BOUNDS,
    ),
    "misaligned": Hazard(
        "misaligned memory access",
        "A float4 must start at a multiple of 16 bytes, a float2 at a multiple of 8: check the "
        "offset that was added to the pointer.",
        Reason.MISALIGNED,
    ),
    "misaligned/tile": Hazard(
        "a tile at a place where it cannot lie",
        "Align the memory of the tiles: `__align__(1024)`, and stages of a multiple of 1,024 "
        "bytes.",
        Reason.MISALIGNED,
    ),
    "out-of-bounds": Hazard(
        "access outside of an array",
        _ITS_INDEX,
        Reason.OUT_OF_BOUNDS, Picture.OUT_OF_BOUNDS,
    ),
    "out-of-bounds/shared": Hazard(
        "access outside of an array",
        "Compare the index with the array's size: is it one into the whole matrix, where one "
        "within the tile is needed? Does a loop run one step too far? Should all threads come to "
        "this line?",
        Reason.OUT_OF_BOUNDS, Picture.OUT_OF_BOUNDS,
    ),
    "out-of-bounds/matrix": Hazard(
        "access outside of an array",
        "In {0} rows of {1} elements, [row][col] is element row * {1} + col: is this the row "
        "length here? If so, guard this line with an `if` for the threads that have no element; in "
        "a loop, look at where it ends.",
        Reason.OUT_OF_BOUNDS, Picture.OUT_OF_BOUNDS,
    ),
    "out-of-bounds/host-code": Hazard(
        "the host uses device memory",
        "The launcher runs on the CPU and cannot follow this pointer: cudaMemset sets what it "
        "leads to to 0, cudaMemcpy copies it, a kernel does all else.",
        Reason.OUT_OF_BOUNDS,
    ),
    "out-of-bounds/host-memory": Hazard(
        "access outside of an array",
        _ITS_INDEX,
        Reason.OUT_OF_BOUNDS,
    ),
    "use-after-free": Hazard(
        "access to memory that has been freed",
        "Call cudaFree only after the last launch that uses the memory.",
        Reason.OUT_OF_BOUNDS,
    ),
    "uninitialized": Hazard(
        "read of memory that nobody has written",
        "Write every element before it is read, also those at the tile's edges (zeros, say), and "
        "let no thread leave before it has written its own. If all that belong to it are written, "
        "the index runs past its row or its array's part.",
        Reason.UNINITIALIZED, Picture.UNWRITTEN,
    ),
    "uninitialized/global": Hazard(
        "read of memory that nobody has written",
        "Is the index right on both sides, here and where it should have been written? Is it "
        "written before, by this thread or in front of a barrier or a launch?",
        Reason.UNINITIALIZED, Picture.UNWRITTEN,
    ),
    "uninitialized/added-to": Hazard(
        "read of memory that nobody has written",
        "This line adds to what is there, and nobody has set that. One thread sums in a local "
        "variable, such as `float sum = 0`, and stores it once. What many threads add to must "
        "hold its initial value before the launch: cudaMemset in the launcher.",
        Reason.UNINITIALIZED, Picture.UNWRITTEN,
    ),
    "uninitialized/updated": Hazard(
        "read of memory that nobody has written",
        "This line adds to what is there, or compares it, and nobody has set that. What many "
        "threads update must hold its initial value before the launch, in all of its elements: "
        "cudaMemset in the launcher. If they do, is this index right?",
        Reason.UNINITIALIZED, Picture.UNWRITTEN,
    ),
    "uninitialized/outside-too": Hazard(
        "read of memory that nobody has written",
        "This line leaves the array, too, as told above. The same index may have gone too far "
        "here: set that right first.",
        Reason.UNINITIALIZED, Picture.UNWRITTEN,
    ),
    "race": Hazard(
        "race between two threads",
        "Put a __syncthreads() between the two lines, for shared memory; in a loop also between "
        "this round and the next. Where many threads add to one place, use an atomic operation.",
        Reason.RACE, Picture.RACE,
    ),
    "race/one-line": Hazard(
        "race between two threads",
        "Where many threads add to one place, use an atomic operation. Where one step reads what "
        "the step before wrote, put a __syncthreads() behind this line, in the loop and outside of "
        "any `if`. If there is one, too many threads come here in one step: look at the condition.",
        Reason.RACE, Picture.RACE,
    ),
    "race/atomic": Hazard(
        "race of an atomic operation with a plain access",
        "An initial value must be there before the launch: set it in the launcher, with "
        "cudaMemset. A result is complete only when the launch is over; what an atomic operation "
        "returns is the value before it.",
        Reason.RACE, Picture.RACE,
    ),
    "race/read-only": Hazard(
        "a read-only load of what this launch has written",
        "The cache that __ldg() reads by does not see stores: it may give what was there before. "
        "Load it without __ldg().",
        Reason.RACE,
    ),
    "race/scope": Hazard(
        "two blocks update an element by operations that are atomic in one block alone",
        "atomicAdd_block() and its kin join the threads of a block; for all of the launch it is "
        "atomicAdd().",
        Reason.RACE, Picture.RACE,
    ),
    "race/same-value": Hazard(
        "several threads write one element, all with the same value",
        "If all of them mean this element, one thread is enough, as in `if (threadIdx.x == 0)`: "
        "harmless as long as it is the same value, and still a race. If each thread or warp should "
        "have elements of its own, the index leaves its number out.",
        Reason.RACE, Picture.RACE,
    ),
    "race/same-value-often": Hazard(
        "several threads write one element, all with the same value",
        "If each thread should have an element of its own: does the index count the threads of the "
        "whole grid, as blockIdx.x * blockDim.x + threadIdx.x does, and a loop's step all of them? "
        "If all mean this one, it is harmless as long as the value is the same, and still a race.",
        Reason.RACE, Picture.RACE,
    ),
    "race/streams": Hazard(
        "race between the work of two streams",
        "A stream orders its own work alone. Record an event behind the work that comes first, "
        "cudaEventRecord(event, stream), and let the other stream wait for it, cudaStreamWaitEvent("
        "other, event); or use one stream.",
        Reason.RACE,
    ),
    "race/left": Hazard(
        "work left in a stream that nothing waits for",
        "Whoever reads the results does so in the default stream. At the launcher's end let that "
        "wait, cudaStreamWaitEvent(0, event), or the host, cudaStreamSynchronize(stream).",
        Reason.RACE,
    ),
    "race/host": Hazard(
        "race between the host and a kernel",
        "A launch returns before its kernel is over: call cudaDeviceSynchronize() before the host "
        "uses this memory.",
        Reason.RACE,
    ),
    "race/pinned": Hazard(
        "race between the host and a copy from its memory",
        "cudaMemcpyAsync from pinned memory returns before it has read this. Wait first, "
        "cudaStreamSynchronize(stream), or write to another buffer.",
        Reason.RACE,
    ),
    "race/stores": Hazard(
        "two threads write the same element",
        "Each element should belong to one thread: is the index right, and should all of them "
        "come to this line?",
        Reason.RACE, Picture.RACE,
    ),
    "race/stores-of-blocks": Hazard(
        "two blocks write the same element",
        "Each element should belong to one thread: does the index use blockIdx, and does every "
        "block stop at its own last element?",
        Reason.RACE, Picture.RACE,
    ),
    "race/blocks": Hazard(
        "race between two blocks",
        "Blocks run in any order, and __syncthreads() does not join them: use an atomic operation, "
        "or a second launch for what needs the first one's results. Where an atomic flag tells "
        "that it is there, __threadfence() must stand between the two.",
        Reason.RACE, Picture.RACE,
    ),
    "race/blocks-unfenced-read": Hazard(
        "race between two blocks",
        "An atomic told this thread that the value is there; it may still read an older one from "
        "its cache. Put a __threadfence() between that atomic and this line.",
        Reason.RACE, Picture.RACE,
    ),
    "early-read": Hazard(
        "read of what an asynchronous copy has not brought yet",
        "The copy was begun, and nobody has waited for it here: wait for its group or its barrier "
        "before this line, and let the other threads wait for those who did.",
        Reason.RACE,
    ),
    "early-read/registers": Hazard(
        "read of a sum while its product is under way",
        "wgmma_commit() and wgmma_wait<0>() come between a product and the first use of its sums; "
        "wgmma_wait<1>() leaves the group that was committed last under way.",
        Reason.RACE,
    ),
    "invalid-copy": Hazard(
        "a copy that reads more bytes than it writes, or fewer than none",
        "Of the 16 bytes from 0 to 16 are read: at the ragged end, bound what is left of the row "
        "on both sides.",
    ),
    "early-write": Hazard(
        "write to memory that is still in use by what was begun before",
        "A copy or a product of tiles may still read or write this: wait for its group first, and "
        "let who writes next wait for a barrier that the users arrive at after that.",
        Reason.RACE,
    ),
    "async-race": Hazard(
        "race with an asynchronous copy or product",
        "Nothing puts the two in order: who reads a tile must wait for what brings it, and who "
        "fills it again for a barrier that all its readers have come to.",
        Reason.RACE,
    ),
    "missing-commit": Hazard(
        "wait for what was never committed",
        "A wait covers committed groups alone: commit after the last copy or product that belongs "
        "to the group, and before the wait.",
        Reason.RACE,
    ),
    "missing-wait": Hazard(
        "the end of a block that has something under way",
        "Wait for it before the block ends: with its shared memory and its registers goes what it "
        "still reads or writes.",
    ),
    "byte-count": Hazard(
        "copies that bring more bytes than their barrier expects",
        "barrier_arrive_expect() takes the bytes of all tiles of a phase together; of a tile all "
        "rows count, also those that lie outside of the matrix.",
    ),
    "invalid-barrier": Hazard(
        "a barrier that is no barrier here",
        "One thread initialises each barrier, once, before anybody uses it: barrier_init(), "
        "fence_barriers(), then a __syncthreads() that all come to.",
    ),
    "invalid-map": Hazard(
        "a tile of a matrix that the copy engine was not told of",
        "Check what make_map() was given: the matrix and each of its rows begin at a multiple of "
        "16 bytes, and the kernel takes the map as `const __grid_constant__ CUtensorMap`.",
    ),
    "invalid-descriptor": Hazard(
        "a tile that a product cannot read where it lies",
        "Align the tile: `__align__(1024)`, and stages of a multiple of 1,024 bytes. Along K a "
        "description moves by 32, 64 or 96 bytes, down by multiples of 8 rows.",
    ),
    "invalid-rank": Hazard(
        "a block of the cluster that is not there",
        "Ranks count from 0 within a cluster. A cluster_sync() after the barriers are initialised, "
        "and one before the end, keep all its blocks there while others use their memory.",
    ),
    "broken-warpgroup": Hazard(
        "a product that not all of four warps give",
        "All 128 threads of a warpgroup, warps 0 to 3, 4 to 7 and so on, make the same calls in "
        "the same order: let a whole warpgroup take the branch.",
    ),
    "missing-fence": Hazard(
        "a store that copies and tensor cores need not see",
        "Copies of tiles and products read shared memory by a way of their own: every thread that "
        "wrote the tile calls fence_async() after its stores, before the barrier.",
        Reason.RACE,
    ),
    "missing-fence/global": Hazard(
        "a store to global memory that a copy need not see",
        "Copies of tiles read global memory by a way of their own: who stored calls "
        "fence_async_global() behind its stores, or who begins the copy does, once it has learned "
        "of them.",
        Reason.RACE,
    ),
    "missing-fence/registers": Hazard(
        "a product whose registers are not ready for it",
        "Call wgmma_fence() before the first product, and again when the sums were read or "
        "written since.",
        Reason.RACE,
    ),
    "deadlock/counting-barrier": Hazard(
        "a wait that cannot end",
        "Count who arrives in each phase, and which bytes come; look at the parity: the first "
        "phase has 0, and a wait for 1 goes through a fresh barrier.",
        Reason.TIMEOUT, Picture.WAITS,
    ),
    "deadlock/spinning": Hazard(
        "threads spin for a change that never comes",
        "Look for who is to write what this loop reads: does that thread come so far, and without "
        "waiting for this one? A block may wait only for blocks that are running, too: for "
        "earlier ones, or in a grid that the GPU holds at once.",
        Reason.TIMEOUT,
    ),
    "deadlock/registers": Hazard(
        "a wait for registers that cannot end",
        "Warps can take only what others have given back: all of a block's together have at most "
        "65,536. Let those that need few call fewer_registers() first, or ask for less.",
        Reason.TIMEOUT,
    ),
    "deadlock": Hazard(
        "the threads wait for each other forever",
        "Every thread of the block must reach the same __syncthreads(), and every lane of the mask "
        "the same warp function: take it out of the `if` or loop that only some of them enter, and "
        "let none of them leave a loop in front of it, as by `break`.",
        Reason.TIMEOUT, Picture.WAITS,
    ),
    "grid-barrier": Hazard(
        "a barrier of the whole grid, of which not all blocks need be there",
        "Launch the kernel by cudaLaunchCooperativeKernel, which starts all blocks at once.",
    ),
    "divergent-barrier": Hazard(
        "the block's threads wait at different barriers",
        "Move __syncthreads() to where all threads of the block come by, out of any `if` that "
        "depends on threadIdx.",
        Reason.DIVERGENT_BARRIER, Picture.WAITS,
    ),
    "divergent-barrier/left-out": Hazard(
        "a barrier that not all threads of the block come to",
        "Move __syncthreads() out of the `if` or loop that only some of them enter: all must come "
        "by, equally often.",
        Reason.DIVERGENT_BARRIER, Picture.WAITS,
    ),
    "host-call": Hazard(
        "a host function called",
        "nvcc does not compile this: call it in the launcher, before or after the launch.",
        Reason.HOST_FUNCTION,
    ),
    "invalid-mask": Hazard(
        "a warp function with a wrong mask",
        _SAME_MASK,
        Reason.INVALID_MASK,
    ),
    "invalid-mask/exited-lane": Hazard(
        "a warp function with a wrong mask",
        _SAME_MASK,
        Reason.INVALID_MASK, Picture.MASK,
    ),
    "absent-lane": Hazard(
        "a shuffle from a lane that takes no part",
        "Its value is undefined. Let all lanes that are read from make the call and be in the "
        "mask; a block of whole warps, in which those without an element bring a neutral one, has "
        "them all. Or use the result only where the lane is there.",
        Reason.INVALID_MASK,
    ),
    "constant-write": Hazard(
        "write to __constant__ memory",
        "Kernels can only read it; nvcc warns and leaves the write out. cudaMemcpyToSymbol in the "
        "launcher sets it; what kernels write belongs in a __device__ variable.",
    ),
    "bad-free": Hazard(
        "free of what is no memory from malloc",
        "Free a pointer once, and as malloc or new returned it.",
        Reason.OUT_OF_BOUNDS,
    ),
    "timeout": Hazard(
        "stopped at the time limit",
        "If a loop is here, check that its condition becomes false for every thread; if not, try "
        "a smaller size.",
    ),
    "assert": Hazard(
        "an assertion failed",
        "Print the values that the condition compares, from this thread alone.",
    ),
    "trap": Hazard(
        "the kernel stopped itself",
        "Look at the condition that led to __trap().",
    ),
    "stack-overflow": Hazard(
        "a thread ran out of stack",
        "Make the local arrays smaller, move them to shared memory, or end the recursion.",
    ),
    "stack-overflow/recursion": Hazard(
        "recursion deeper than a card's stack",
        "Write a loop, or divide in halves, so that the depth is a logarithm. Where the depth is "
        "bounded, cudaDeviceSetLimit(cudaLimitStackSize, bytes) asks for more.",
    ),
    "shared-memory": Hazard(
        "too much shared memory",
        "Use smaller tiles, or `extern __shared__` memory, whose size the launch gives.",
    ),
    "not-supported": Hazard(
        "something that the emulator cannot do",
        "Run this program on a GPU, or do without it here.",
    ),
    "crash/division": Hazard(
        "a whole number divided by 0",
        "Which divisor, behind / or %, is 0 here? Does a loop's variable begin with 0, or has a "
        "division before it been rounded down to 0?",
    ),
    "crash": Hazard(
        "the host code crashed",
        "Device memory belongs to kernels: check that the host uses no pointer it did not allocate "
        "or that has been freed, and no index outside of an array.",
    ),
}  # fmt: skip
