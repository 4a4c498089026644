"""What native code of a launcher can do outside of its own process: nothing. In one build."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.ground.errors import KernelCrash, KernelTimeout
from utils.ground.paths import ROOT
from utils.process import child, pool, proc, workers
from utils.process.guest import lockdown

# Each try leaves what it got in out[0], negative errno where the system refused.
TRIES = r"""
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int number(const char* variable) { return getenv(variable) ? 1 : 0; }
static long parent_file(const char* name, int how) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", getppid(), name);
    return open(path, how);
}
static long arena_cut() {  // the longest of the open files
    long best = -1, size = 0;
    for (int fd = 3; fd < 64; ++fd) {
        struct stat s;
        if (!fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_size > size) best = fd, size = s.st_size;
    }
    return ftruncate(int(best), 0);
}
static void* nothing(void*) { return nullptr; }
static void* stays(void*) { for (;;) pause(); }

static long attempt(int what, int at) {
    char buffer[64];
    iovec here{buffer, 8}, there{(void*)0x400000, 8};
    rlimit high{1 << 20, 1 << 20};
    pthread_t thread;
    switch (what) {
        case 0: return fork();
        case 1: return vfork();
        case 2: return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        case 3: return execl("/bin/true", "true", nullptr);
        case 4: return open("/tmp/workbook-leftover", O_CREAT | O_WRONLY, 0600);
        case 5: return open("/dev/shm/workbook-leftover", O_CREAT | O_RDWR, 0600);
        case 6: return unlink("/tmp/workbook-kept");
        case 7: return rename("/tmp/workbook-kept", "/tmp/workbook-moved");
        case 8: return mkdir("/tmp/workbook-folder", 0700);
        case 9: return chmod("/tmp/workbook-kept", 0777);
        case 10: return open("/tmp/workbook-kept", O_RDONLY);
        case 11: return socket(AF_INET, SOCK_STREAM, 0);
        case 12: return socket(AF_UNIX, SOCK_STREAM, 0);
        case 13: return kill(getppid(), 0);
        case 14: return kill(-1, 0);
        case 15: return ptrace(PTRACE_ATTACH, getppid(), 0, 0);
        case 16: return process_vm_readv(getppid(), &here, 1, &there, 1, 0);
        case 17: return process_vm_writev(getppid(), &here, 1, &there, 1, 0);
        case 18: return parent_file("mem", O_RDWR);
        case 19: return parent_file("environ", O_RDONLY);
        case 20: return parent_file("fd/1", O_WRONLY);
        case 21: return arena_cut();
        case 22: return setrlimit(RLIMIT_FSIZE, &high);
        case 23: return setsid();
        case 24: return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
        case 25: return setuid(65534);
        case 26: return syscall(SYS_tkill, getppid(), SIGSTOP);
        case 27: return truncate("/tmp/workbook-kept", 0);
        case 28: return utimes("/tmp/workbook-kept", nullptr);
        case 29: return symlink("/tmp", "/tmp/workbook-link");
        // what goes on working
        case 40: pthread_create(&thread, nullptr, nothing, nullptr);
            return pthread_join(thread, nullptr);
        case 41: return number("WORKBOOK_LOG") + number("SECRET") + number("HOME");
        case 42: return raise(SIGWINCH);
        case 43: return memfd_create("mine", 0) < 0;
        case 44: return -pthread_create(&thread, nullptr, stays, nullptr);
        case 50: {
            volatile char* p = (char*)malloc(size_t(at) << 20);
            for (size_t i = 0; i >> 20 < size_t(at); i += 4096) p[i] = 1;
            return 0;
        }
        case 51: for (int i = 0; i < at; ++i) pthread_create(&thread, nullptr, stays, nullptr);
            for (;;) pause();
        case 52: alarm(1); for (;;) pause();
        case 53: throw 1;
        case 54: quick_exit(0);
        case 55: atexit([] { for (;;) pause(); }); exit(0);
        case 56: sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, nullptr);
            for (;;) pause();
        case 57: for (int fd = 3; fd < 1024; ++fd) write(fd, "{}\n", 3); return 0;
        case 58: for (int fd = 3; fd < 1024; ++fd) {
            for (int i = 0; i < 70; ++i) write(fd, "[[[[[[[[[[", 10);
            write(fd, "\n", 1);
        } return 0;
        case 59: for (;;) for (int fd = 3; fd < 8; ++fd) write(fd, buffer, 64);
    }
    return 0;
}
void tries(float* out, int what, int at) {
    errno = 0;
    long got = attempt(what, at);
    out[0] = float(got == -1 && errno ? -errno : got);
}
"""
REFUSED = range(30)


@pytest.fixture(scope="module")
def tries():
    kernel = compile_cuda(TRIES, "tries", backend="emulator")

    def run(what: int, at: int = 0, timeout: float = 5.0) -> float:
        arguments = {"out": torch.full((1,), 1e9), "what": what, "at": at}
        return kernel.isolated(arguments, timeout=timeout).after["out"].item()

    return run


@pytest.fixture
def in_force(tries):
    tries(42)
    return pool.slot("emulator").worker.in_force


@pytest.fixture
def kept():
    """A file outside of all that a worker needs."""
    path = Path("/tmp/workbook-kept")
    path.write_text("kept")
    yield path
    path.unlink()


def test_a_launcher_reaches_nothing_outside_of_its_process(tries, in_force, kept, monkeypatch):
    if len(in_force) < 2:
        pytest.skip("this system has no Landlock, or no seccomp")
    before = kept.stat()
    got = {what: tries(what) for what in REFUSED}
    allowed = {-errno.EPERM, -errno.EACCES, -errno.EXDEV, -errno.ENOENT, -errno.EROFS}
    assert {what: error for what, error in got.items() if error not in allowed} == {}
    assert kept.stat() == before  # before it is read here, which may change it
    assert kept.read_text() == "kept"
    assert not list(Path("/tmp").glob("workbook-[slfm]*"))


@pytest.mark.parametrize("what", [40, 42, 43])
def test_what_a_process_does_to_itself_goes_on_working(tries, what):
    assert tries(what) == 0


def test_a_worker_is_given_no_environment(tries, monkeypatch):
    monkeypatch.setenv("WORKBOOK_LOG", "/tmp/log")
    monkeypatch.setenv("SECRET", "s")
    pool.slot("emulator").restart()
    assert tries(41) == 0


def test_a_worker_in_which_a_thread_was_left_running_is_replaced(tries):
    tries(42)
    first = pool.slot("emulator").worker.process.pid
    tries(40)
    assert pool.slot("emulator").worker.process.pid == first
    tries(44)
    assert pool.slot("emulator").worker.process.pid != first


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (52, KernelCrash, "killed by SIGALRM"),
        (53, KernelCrash, "killed by SIGABRT"),
        (54, KernelCrash, "exit status 0 before the launcher returned"),
        (55, KernelTimeout, "did not end within 1.5 seconds"),
        (56, KernelTimeout, "did not end within 1.5 seconds"),
        (57, KernelCrash, "answered in the place of the process that runs it"),
        (58, KernelCrash, "answered in the place of the process that runs it"),
        (59, (KernelCrash, KernelTimeout), "in the place|did not end|without end|closed|ended"),
    ],
)
def test_whatever_ends_a_launcher_is_a_verdict_in_time(tries, what, error, message):
    start = time.monotonic()
    with pytest.raises(error, match=message):
        tries(what, timeout=1.5)
    assert time.monotonic() - start < 1.5 + child.GRACE + 2
    assert tries(42) == 0


def test_memory_and_threads_have_limits(tries, monkeypatch):
    monkeypatch.setattr(child, "MEMORY", 256 << 20)
    with pytest.raises(KernelCrash, match=r"used more than 0.268 GB of memory and was stopped"):
        tries(50, 1 << 13, timeout=20.0)
    monkeypatch.setattr(workers, "MAX_THREADS", 50)
    with pytest.raises(KernelCrash, match="started more than 50 threads and was stopped"):
        tries(51, 100, timeout=20.0)
    assert tries(50, 16) == 0


def test_processes_are_ended_with_the_worker_where_nothing_forbids_them():
    """As on a system without seccomp: a stand-in for the worker, whose grandchild has left it."""
    program = """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    (child,) = proc.descendants(process.pid)
    for pid in (child, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert proc.descendants(process.pid) == [] and proc.usage(process.pid) == (0, 0)


def test_the_filter_refuses_by_the_numbers_of_each_processor():
    for column, audit in lockdown._PROCESSORS.values():
        program = lockdown._program(column, audit, 1234)
        numbers = [n[column] for n in lockdown._REFUSED.values() if n[column] is not None]
        assert len(set(numbers)) == len(numbers) and len(program) < 255
        for number in (*numbers, lockdown._KILL[column], lockdown._CLONE3[column]):
            assert answer(program, audit, number) & 0xFFFF0000 == lockdown._ERRNO
        assert answer(program, audit, 0) == lockdown._ALLOW == answer(program, audit, 63)
        assert answer(program, audit, lockdown._TGKILL[column], 1234) == lockdown._ALLOW
        assert answer(program, audit, lockdown._CLONE[column], 0x3D0F00) == lockdown._ALLOW
        assert answer(program, audit ^ 1, 0) == lockdown._KILLED


def answer(program, audit: int, number: int, first: int = 0) -> int:
    """What a seccomp filter says of a system call with that number and that first argument."""
    data = {0: number, 4: audit, 16: first, 32: 1, 36: 0}
    at = value = 0
    while True:
        code, yes, no, constant = program[at]
        at += 1
        if code == lockdown._RETURN:
            return constant
        if code == lockdown._LOAD:
            value = data[constant]
            continue
        true = {
            lockdown._EQUAL: value == constant,
            lockdown._AT_LEAST: value >= constant,
            lockdown._ANY_BIT: bool(value & constant),
        }[code]
        at += yes if true else no


def test_the_worker_needs_no_more_than_the_standard_library():
    program = "import sys; sys.path.insert(0, 'utils/process'); from guest import lockdown\n"
    program += "print(lockdown.lock_in([])); open('/etc/passwd')"
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("[") and ("PermissionError" in done.stderr or "[]" in done.stdout)
