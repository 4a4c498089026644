"""What the emulator finds wrong, in words: one sentence on what it is, one on what to do."""

# kind -> what happened, and one sentence of advice
WORDS = {
    "illegal-address": (
        "illegal memory access",
        "Compare the index at this line with the array's size, and check that the pointer came "
        "from cudaMalloc and has not been freed.",
    ),
    "misaligned": (
        "misaligned memory access",
        "A float4 must start at a multiple of 16 bytes, a float2 at a multiple of 8: check the "
        "offset that was added to the pointer.",
    ),
    "out-of-bounds": (
        "access outside of an array",
        "Compare the index with the array's size, and guard this line with an `if` for the threads "
        "that have no element.",
    ),
    "out of a shared array": (
        "access outside of an array",
        "Is this an index into the whole matrix, where one within the tile is needed? Are row and "
        "column swapped?",
    ),
    "use-after-free": (
        "access to memory that has been freed",
        "Call cudaFree only after the last launch that uses the memory.",
    ),
    "uninitialized": (
        "read of memory that nobody has written",
        "Write every element before it is read: fill the tile's edges with zeros, or set the array "
        "with cudaMemset.",
    ),
    "race": (
        "race between two threads",
        "Put a __syncthreads() between the two lines, for shared memory; in a loop also between "
        "this round and the next. Where many threads add to one place, use an atomic operation.",
    ),
    "race in a line": (
        "race between two threads",
        "One step of this line reads what another writes: put a __syncthreads() behind it, in the "
        "loop and outside of any `if`; or use an atomic operation where many threads add to one "
        "place.",
    ),
    "race of writers": (
        "two threads write the same element",
        "Each element should belong to one thread: is the index right, and should all of them "
        "come to this line?",
    ),
    "race of owners": (
        "two blocks write the same element",
        "Each element should belong to one thread: does the index use blockIdx, and does every "
        "block stop at its own last element?",
    ),
    "race of blocks": (
        "race between two blocks",
        "Blocks run in any order, and no barrier joins them: use an atomic operation, or a second "
        "launch for what needs the first one's results.",
    ),
    "deadlock": (
        "the threads wait for each other for ever",
        "Every thread of the block must reach the same __syncthreads(), and every lane of the mask "
        "the same warp function: take it out of the `if` or loop that only some of them enter.",
    ),
    "divergent-barrier": (
        "the block's threads wait at different barriers",
        "Move __syncthreads() to where all threads of the block come by, out of any `if` that "
        "depends on threadIdx.",
    ),
    "barrier left out": (
        "a barrier that not all threads of the block come to",
        "Move __syncthreads() out of the `if` or loop that only some of them enter: all must come "
        "by, equally often.",
    ),
    "host-call": (
        "a host function called",
        "nvcc does not compile this: call it in the launcher, before or after the launch.",
    ),
    "invalid-mask": (
        "a warp function with a wrong mask",
        "The mask must have a bit for every lane that makes the call, the caller's own among them. "
        "0xffffffff is right where the whole warp makes it: outside of any `if`, and nobody may "
        "return before it.",
    ),
    "timeout": (
        "stopped at the time limit",
        "If a loop is here, check that its condition becomes false for every thread; if not, try "
        "a smaller size.",
    ),
    "assert": (
        "an assertion failed",
        "Print the values that the condition compares, from this thread alone.",
    ),
    "trap": (
        "the kernel stopped itself",
        "Look at the condition that led to __trap().",
    ),
    "stack-overflow": (
        "a thread ran out of stack",
        "Make the local arrays smaller, move them to shared memory, or end the recursion.",
    ),
    "shared-memory": (
        "too much shared memory",
        "Use smaller tiles, or `extern __shared__` memory, whose size the launch gives.",
    ),
    "invalid-configuration": (
        "a launch with an impossible configuration",
        "A block has 1 to 1024 threads, a grid at least one block.",
    ),
    "not-supported": (
        "something that the emulator cannot do",
        "Run this program on a GPU, or do without it here.",
    ),
    "crash": (
        "the host code crashed",
        "Device memory belongs to kernels: check that the host uses no pointer it did not allocate "
        "or that has been freed, and no index outside of an array.",
    ),
}  # fmt: skip
