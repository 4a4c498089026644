"""Memory of a GPU that goes from one process to another, by a driver that is made up."""

import ctypes
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from utils.cuda import toolchain
from utils.ground.errors import ToolError
from utils.ground.paths import ROOT
from utils.process.guest import device_memory

FAKE = ROOT / "tests/support/fake_driver.c"
DEVICE, MB = 3, 1 << 20
# As guest/kernel.py does: without PyTorch, from an open file alone.
BORROWER = f"""
import ctypes, socket, sys
sys.path.insert(0, {str(ROOT / "utils/process/guest")!r})
import device_memory
device_memory._driver = lambda: ctypes.CDLL(sys.argv[1])
with socket.socket(fileno=int(sys.argv[2])) as hands:
    file = socket.recv_fds(hands, 1, 1)[1][0]
piece = device_memory.borrow(file, int(sys.argv[3]), {DEVICE})
text = ctypes.string_at(piece.address, 5)
ctypes.memmove(piece.address + piece.size - 5, text[::-1], 5)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    made = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, FAKE], check=True)
    return made


@pytest.fixture(autouse=True)
def fake(driver, monkeypatch):
    monkeypatch.setattr(device_memory, "_driver", lambda: ctypes.CDLL(str(driver)))


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_another_process_reads_and_writes_what_it_was_handed(driver):
    before = files()
    piece = device_memory.create(3 * MB, DEVICE)
    assert piece.size == 4 * MB, "what the device can map"
    ctypes.memmove(piece.address, b"hello", 5)
    ours, theirs = socket.socketpair()
    words = [sys.executable, "-I", "-S", "-c", BORROWER, driver, theirs.fileno(), piece.size]
    borrower = subprocess.Popen(list(map(str, words)), pass_fds=[theirs.fileno()])
    file = piece.file()
    socket.send_fds(ours, [b"."], [file])
    assert borrower.wait(20) == 0
    assert ctypes.string_at(piece.address + piece.size - 5, 5) == b"olleh"
    os.close(file)
    ours.close()
    theirs.close()
    piece.close()
    assert files() == before


def test_where_there_is_no_more_memory_nothing_is_left_open():
    before = files()
    with pytest.raises(MemoryError, match="cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY"):
        device_memory.create(1 << 40, DEVICE)
    assert files() == before


def test_what_the_driver_refuses_is_named():
    with pytest.raises(OSError, match="cuMemImportFromShareableHandle: CUDA_ERROR_INVALID_VALUE"):
        device_memory.borrow(999, 2 * MB, DEVICE)


def test_the_layouts_are_those_of_cudas_headers(tmp_path):
    try:
        headers = toolchain.cuda_home() / "include"
    except ToolError as missing:
        pytest.skip(str(missing))
    if not Path(headers, "cuda.h").is_file():
        pytest.skip("CUDA's headers are not here")
    words = ["cc", "-fsyntax-only", "-DWITH_CUDA", f"-I{headers}", str(FAKE)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
