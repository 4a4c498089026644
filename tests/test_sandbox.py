"""The box: what a process in it can reach, and what is said where there is none."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.box import needs_box
from support.processes import sleeping, wait_until

from utils.cuda.compiler import compile_cuda
from utils.ground.errors import CompileError, ToolError
from utils.process import sandbox

USERS = pytest.mark.parametrize("other_user", [False, True])


def inside(script: str, **lent) -> subprocess.CompletedProcess:
    """Run a script of the shell in a box."""
    words = sandbox.command(["/bin/sh", "-c", script], **lent)
    return subprocess.run(words, capture_output=True, text=True, timeout=30)


@needs_box
def test_a_program_starts_in_its_folder_also_beside_a_gpus_nodes(tmp_path):
    assert inside("pwd", gpu=True, folder="/tmp").stdout == "/tmp\n"


@needs_box
@USERS
def test_nothing_but_what_is_lent_can_be_reached(tmp_path, other_user, monkeypatch):
    monkeypatch.setenv("SECRET", "42")
    for name in ("lent", "theirs", "other"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "file").write_text(name)
    script = f"""
        id -u; cat {tmp_path}/lent/file; echo
        cat {tmp_path}/other/file; ls /home /etc/passwd; echo x > {tmp_path}/lent/file
        echo x > /usr/file; echo "secret:$SECRET given:$GIVEN"
        cat /sys/class/net/*/address; ls /proc | grep -c '^[0-9]'
        mount -t tmpfs none /mnt; hostname
    """
    lent = {"readable": [tmp_path / "lent"], "environment": {"GIVEN": "1"}}
    done = inside(script, other_user=other_user, **lent)
    said = done.stdout.splitlines()
    assert said[:2] == ["65534", "lent"]
    assert "secret: given:1" in said and "box" in said and "other" not in said
    assert int(said[said.index("secret: given:1") + 1]) < 6, "no process but its own"
    assert done.stderr.count("No such file") >= 4 and "Read-only file system" in done.stderr
    assert (tmp_path / "lent/file").read_text() == "lent"


@needs_box
def test_a_link_among_what_the_system_shows_may_be_lent():
    # As /usr/local/cuda is one, where nvcc asks for it.
    link = next(p for p in map(Path, ("/usr/bin/awk", "/usr/bin/cc")) if p.is_symlink())
    done = inside(f"test -x {link} && echo there", readable=[link])
    assert done.stdout == "there\n", done.stderr


@needs_box
def test_what_is_lent_to_write_is_written_and_the_rest_of_the_disk_is_small(tmp_path):
    script = f"echo done > {tmp_path}/file; head -c 600M /dev/zero > /tmp/big"
    done = inside(script, writable=[tmp_path])
    assert (tmp_path / "file").read_text() == "done\n"
    assert done.returncode and "No space left" in done.stderr


@needs_box
def test_there_is_no_network(tmp_path):
    # A shell's own sockets: nothing answers, not even this machine.
    words = sandbox.command(["bash", "-c", "echo > /dev/tcp/127.0.0.1/22; cat /proc/net/route"])
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert "refused" in done.stderr or "unreachable" in done.stderr
    assert len(done.stdout.splitlines()) <= 1


@needs_box
@USERS
def test_it_ends_with_the_process_that_asked_for_it(other_user):
    words = sandbox.command(["sleep", "1234.5"], other_user=other_user)
    asking = subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", *words], start_new_session=True)

    wait_until(lambda: sleeping("1234.5"))
    os.kill(asking.pid, signal.SIGKILL)
    asking.wait()
    wait_until(lambda: not sleeping("1234.5"))


@needs_box
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_processes_are_limited_also_where_root_asks():
    many = "prlimit --nproc=20 -- sh -c 'for i in $(seq 40); do sleep 5 & done'"
    assert "Cannot fork" in inside(many, other_user=True).stderr


def test_no_box_is_told_in_words(monkeypatch):
    sandbox._prefix.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolError, match="there is no bubblewrap.*sudo apt install bubblewrap"):
        sandbox.require()
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")
    with pytest.raises(ToolError, match=r"makes no box here \(exit status 1\)"):
        sandbox.require()
    sandbox._prefix.cache_clear()


@needs_box
def test_a_kernel_is_compiled_and_run_in_a_box_and_reads_no_other_file(tmp_path, monkeypatch):
    import torch

    monkeypatch.setenv("WORKBOOK_BOX", "1")
    (tmp_path / "other.cuh").write_text("constexpr float secret = 42;\n")
    text = """
    #include <cstdio>
    __global__ void scale_kernel(float* x, float by) { x[threadIdx.x] *= by; }
    void scale(float* x, int n) {
        scale_kernel<<<1, n>>>(x, fopen("/etc/hostname", "r") ? 100 : 2);
    }
    """
    x = torch.ones(8)
    compile_cuda(text, "scale", backend="emulator")(x, 8)
    assert x.tolist() == [2.0] * 8
    stolen = f'#include "{tmp_path}/other.cuh"\n{text}'
    with pytest.raises(CompileError, match="No such file"):
        compile_cuda(stolen, "scale", backend="emulator")
