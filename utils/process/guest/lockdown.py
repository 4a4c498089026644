"""What a worker process may do once a stranger's native code runs in it: compute, and little else.

`lock_in` is called in the worker, before any library of a kernel is loaded, by `kernel.py`,
which runs without site packages: standard library only. What this kernel of Linux lacks is left
out, and the caller is told what is in force.

Not stopped by any of this: what native code does to its own process. It can find the worker's
memory and pipes in it. So nothing that the worker says of itself is worth more than a hint; what
a judge compares are bytes.
"""

import ctypes
import os
import resource
import struct
import sys

MAX_OUTPUT = 64 << 20  # bytes that a kernel may print, to memory; the rest is dropped
MAX_FILES = 256  # open at once

_libc = ctypes.CDLL(None, use_errno=True)


def lock_in(readable: list[str]) -> list[str]:
    """Give up, for good and for every thread that follows: writing files, other processes, the
    network. Files can be read beneath `readable` and where libraries are. Returns what is in force.
    """
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what descends from this process stays below it
    _drop_capabilities()
    if not _prctl(38, 1):  # PR_SET_NO_NEW_PRIVS
        return []
    in_force = []
    if version := _landlock(readable):
        in_force.append(f"landlock {version}")
    if _seccomp():
        in_force.append("seccomp")
    return in_force


def limit(files: int | None = MAX_FILES) -> None:
    """Set the limits that hold anywhere; `files` may be open at once, None: as many as before.

    None is on memory: the emulator reserves a terabyte of addresses and a driver more, and a limit
    on what is used does not exist. The process outside looks at what is used instead.
    """
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, MAX_OUTPUT),
        (resource.RLIMIT_NOFILE, files),
    ):
        ceiling = resource.getrlimit(what)[1]
        if most is not None:
            most = most if ceiling == resource.RLIM_INFINITY else min(most, ceiling)
            resource.setrlimit(what, (most, most))


def _prctl(option: int, value: int) -> bool:
    zero = ctypes.c_ulong(0)
    return bool(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero) == 0)


def _drop_capabilities() -> None:
    """As root: all but reading and searching any file, which a library of another's may need."""
    may_read = 1 << 2  # CAP_DAC_READ_SEARCH
    header = struct.pack("=Ii", 0x20080522, 0)
    keep = may_read if os.geteuid() == 0 else 0
    _libc.capset(header, struct.pack("=6I", keep, keep, 0, 0, 0, 0))


# --- Landlock: what of the file system can be reached

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same number on every processor
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many rights on files a version knows
_SYSTEM = """/usr /lib /lib64 /etc/ld.so.cache /etc/ld.so.preload /proc/self /sys/devices/system/cpu
    /dev/null /dev/zero /dev/urandom /etc/localtime /nix/store""".split()


def _landlock(readable: list[str]) -> int:
    """The version of Landlock that holds this thread now; 0 where there is none."""
    version = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return 0
    files = (1 << _RIGHTS.get(version, 16)) - 1
    network = 3 if version >= 4 else 0  # TCP: bind and connect
    scopes = 3 if version >= 6 else 0  # abstract sockets and signals stay inside
    rules = struct.pack("=QQQ", files, network, scopes)
    rules = rules[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _libc.syscall(_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    if ruleset < 0:
        return 0
    for path in {*readable, *_SYSTEM, sys.prefix, sys.base_prefix}:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # not on this machine
        rights = _EXECUTE | _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        _libc.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    done = _libc.syscall(_RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return version if done else 0


# --- seccomp: which system calls are answered

# name -> its number on x86-64 and on arm64, where it has one there. All answer EPERM.
_REFUSED: dict[str, tuple[int, int | None]] = {
    # other processes: to make them, to become them, to look into them, to send them signals
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    # the processor's time: the judge's own priority tells a file that it is being judged, too
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # other machines, and what outlives a process
    "socket": (41, 198),
    "socketpair": (53, 199),
    "bind": (49, 200),
    "connect": (42, 203),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # files, also those that are open: the arena's length is the reader's
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "fallocate": (285, 47),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # the system, and ways around this list
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "setrlimit": (160, 164),
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setgroups": (116, 159),
    "capset": (126, 91),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
# processor -> its column above, and what the kernel calls it
_PROCESSORS = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE, _CLONE3, _KILL = (56, 220), (435, 435), (62, 129)
_TGKILL, _PRLIMIT = (234, 131), (302, 261)
_CLONE_THREAD = 0x10000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILLED = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38


Instruction = tuple[int, int, int, int]


def _argument(number: int, half: int = 0) -> int:
    """Where the filter finds an argument of the call; both processors are little-endian."""
    return 16 + 8 * number + 4 * half


def _program(processor: int, audit: int, pid: int) -> list[Instruction]:
    """The filter: instructions of code, jump if true, jump if not, and a constant."""

    def only(numbers: tuple[int, int], *checks: Instruction) -> list[Instruction]:
        """Where the call is that one, what `checks` say; they end in a return."""
        return [(_EQUAL, 0, len(checks), numbers[processor]), *checks]

    refuse = (_RETURN, 0, 0, _ERRNO | _EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    own = [(_LOAD, 0, 0, _argument(0)), (_EQUAL, 0, 1, pid), allow, refuse]
    thread = [(_LOAD, 0, 0, _argument(0)), (_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse]
    reads = [
        *((_LOAD, 0, 0, _argument(2)), (_EQUAL, 0, 3, 0)),
        *((_LOAD, 0, 0, _argument(2, 1)), (_EQUAL, 0, 1, 0)),
        *(allow, refuse),
    ]
    numbers = [numbers[processor] for numbers in _REFUSED.values()]
    listed = [number for number in numbers if number is not None]
    return [
        (_LOAD, 0, 0, 4),  # the processor that the call is made for
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILLED),
        (_LOAD, 0, 0, 0),  # the call's number
        (_AT_LEAST, 0, 1, 0x40000000),  # x32
        refuse,
        # A thread is made by clone3, whose flags a filter cannot see, or else by clone.
        *only(_CLONE3, (_RETURN, 0, 0, _ERRNO | _ENOSYS)),
        *only(_CLONE, *thread),
        *only(_KILL, *own),
        *only(_TGKILL, *own),
        *only(_PRLIMIT, *reads),
        *((_EQUAL, len(listed) - at, 0, n) for at, n in enumerate(listed)),
        allow,
        refuse,
    ]


def _seccomp() -> bool:
    """Whether the filter is in force for this thread and those that it starts."""
    processor = _PROCESSORS.get(os.uname().machine)
    if processor is None or sys.maxsize < 1 << 32:
        return False
    instructions = _program(*processor, os.getpid())
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(instructions), ctypes.addressof(buffer))
    # SECCOMP_SET_MODE_FILTER, with SECCOMP_FILTER_FLAG_SPEC_ALLOW: older kernels would slow down
    # every load that follows a store.
    if _libc.syscall((317, 277)[processor[0]], 1, 4, program) == 0:
        return True
    return bool(_libc.prctl(22, 2, program, 0, 0) == 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
