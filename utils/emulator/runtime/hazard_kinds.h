// Every hazard that the runtime tells of. utils/emulator/hazards.py has words for each.
#pragma once

namespace emu {

struct HazardKind {
    const char* kind;
    const char* variant = "";  // where there are different things to say of one kind
};

namespace hazard {

inline constexpr HazardKind
    // Places that may not be used, or not in this way.
    illegal_address{"illegal-address"},
    misaligned{"misaligned"}, misaligned_tile{"misaligned", "tile"}, out_of_bounds{"out-of-bounds"},
    out_of_shared{"out-of-bounds", "shared"}, host_code{"out-of-bounds", "host-code"},
    host_memory{"out-of-bounds", "host-memory"}, use_after_free{"use-after-free"},
    uninitialized{"uninitialized"}, uninitialized_global{"uninitialized", "global"},
    constant_write{"constant-write"}, bad_free{"bad-free"},
    // Two accesses in no order.
    race{"race"}, race_of_atomic{"race", "atomic"}, race_of_same_value{"race", "same-value"},
    race_of_stores{"race", "stores"}, race_of_blocks{"race", "blocks"},
    race_of_blocks_stores{"race", "stores-of-blocks"}, race_of_scope{"race", "scope"},
    race_with_read_only{"race", "read-only"}, race_of_unfenced_read{"race", "blocks-unfenced-read"},
    race_of_streams{"race", "streams"}, race_with_host{"race", "host"},
    left_in_stream{"race", "left"}, race_with_copy{"race", "pinned"},
    // Asynchronous operations.
    early_read{"early-read"}, early_read_of_registers{"early-read", "registers"},
    early_write{"early-write"}, async_race{"async-race"}, missing_commit{"missing-commit"},
    missing_wait{"missing-wait"}, missing_fence{"missing-fence"},
    missing_fence_of_global{"missing-fence", "global"},
    missing_fence_of_registers{"missing-fence", "registers"}, byte_count{"byte-count"},
    invalid_copy{"invalid-copy"}, invalid_barrier{"invalid-barrier"}, invalid_map{"invalid-map"},
    invalid_descriptor{"invalid-descriptor"}, invalid_rank{"invalid-rank"},
    broken_warpgroup{"broken-warpgroup"},
    // Threads that do not meet.
    deadlock{"deadlock"}, deadlock_of_counts{"deadlock", "counting-barrier"},
    deadlock_of_spins{"deadlock", "spinning"}, deadlock_of_registers{"deadlock", "registers"},
    grid_barrier{"grid-barrier"}, divergent_barrier{"divergent-barrier"},
    barrier_left_out{"divergent-barrier", "left-out"}, invalid_mask{"invalid-mask"},
    mask_of_exited_lane{"invalid-mask", "exited-lane"}, absent_lane{"absent-lane"},
    // What ends a launch.
    host_call{"host-call"}, timeout{"timeout"}, assertion{"assert"}, trap{"trap"},
    stack_overflow{"stack-overflow"}, recursion{"stack-overflow", "recursion"},
    too_much_shared{"shared-memory"}, not_supported{"not-supported"}, crash{"crash"};

}  // namespace hazard

}  // namespace emu
