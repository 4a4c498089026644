"""Run a build that must not run away: `python limited.py [SECONDS] PROGRAM ARGUMENTS...`.

A template or a constant expression can keep a compiler busy forever, or take all memory. What is
started here, and all that it starts, has limits, and ends with the process that asked for it. The
standard library only, and little of it: each build waits for this.
"""

import os
import resource
import select
import sys

MEMORY = 4 << 30  # bytes of address space of one compiler; nvcc stays under 1 GiB
OUTPUT = 1 << 30  # bytes of one file
SECONDS = 120.0
_SIGKILL = 9  # to import `signal` would take as long as Python's start

LATE = (
    "the compiler was stopped after {:g} seconds; "
    "is there a template or a constant expression that does not end?"
)


def main() -> int:
    """The exit status of the build; that of a failed one where it was stopped."""
    seconds, words = SECONDS, sys.argv[1:]
    if words[0].isdecimal():
        seconds, words = float(words[0]), words[1:]
    limits = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_FSIZE: OUTPUT,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        _, most = resource.getrlimit(kind)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (allowed, allowed))
    asking = os.pidfd_open(os.getppid())
    build = os.posix_spawn(words[0], words, os.environ, setpgroup=0)
    try:
        ready = select.poll()
        ready.register(ended := os.pidfd_open(build), select.POLLIN)
        ready.register(asking, select.POLLIN)
        events = ready.poll(1000 * seconds)
        if (ended, select.POLLIN) in events:
            return os.waitstatus_to_exitcode(os.waitpid(build, 0)[1])
        if not events:
            print(LATE.format(seconds), flush=True)
        return 1
    finally:
        try:
            os.killpg(build, _SIGKILL)  # with those that ninja left behind
        except ProcessLookupError:
            pass


if __name__ == "__main__":
    sys.exit(main())
