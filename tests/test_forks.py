"""Forks of a process that has done its imports: what they are given, and when they end."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.processes import ended

from utils.ground.paths import environment
from utils.process.forkserver import ForkServer

SLEEP = "import time; time.sleep(60)"


@pytest.fixture(scope="module")
def server():
    return ForkServer(["json"])


@pytest.fixture
def begin(server, tmp_path):
    """Begins a fork that executes Python's text, as `python -m timeit` does."""

    def begin(text: str, by=server, **env: str):
        words = ["timeit", "-n1", "-r1", text]
        return by.run(words, env=env, cwd=str(tmp_path), log=str(tmp_path / "log.txt"))

    return begin


@pytest.mark.parametrize(
    ("text", "status"),
    [("0", 0), ("import os; os._exit(3)", 3), ("import os; os.abort()", -signal.SIGABRT)],
)
def test_its_status_is_told(begin, text, status):
    fork = begin(text)
    assert fork.wait(20) == status == fork.poll()


def test_it_leaves_as_python_does(begin, tmp_path):
    late = "threading.Thread(target=lambda: (time.sleep(0.3), print('a thread'))).start()"
    text = f"import atexit, threading, time; atexit.register(print, 'the last'); {late}"
    assert begin(text).wait(20) == 0
    log = (tmp_path / "log.txt").read_text()
    assert log.endswith("a thread\nthe last\n")


def test_an_error_is_told_in_its_log(server, tmp_path):
    log = tmp_path / "log.txt"
    fork = server.run(["no_such_module"], env={}, cwd=str(tmp_path), log=str(log))
    assert fork.wait(20) == 1 and "No module named no_such_module" in log.read_text()


def test_it_has_what_it_was_given_and_no_more(begin, tmp_path):
    text = "import os, sys; print(os.getcwd(), os.environ.get('HOME'), os.environ['SEED'],"
    begin(text + " sys.stdin.read(), 'json' in sys.modules)", SEED="7").wait(20)
    assert (tmp_path / "log.txt").read_text().startswith(f"{tmp_path} None 7  True")


def test_one_that_is_left_ends_and_so_does_what_it_began(begin, tmp_path):
    """Its group, and the forks that it asked for."""
    text = """
import os, subprocess, time
from utils.process.forkserver import inherited
child = subprocess.Popen(['sleep', '60'])
other = inherited(['timeit', '-n1', '-r1', 'import time; time.sleep(60)'], env={}, cwd='.')
with open('pids.part', 'w') as file: file.write(f'{child.pid} {other.pid}')
os.rename('pids.part', 'pids')
time.sleep(60)
"""
    fork = begin(text, PATH=os.environ["PATH"])
    while not (tmp_path / "pids").exists():
        assert fork.poll() is None, (tmp_path / "log.txt").read_text()
        time.sleep(0.05)
    assert fork.poll() is None
    pids = [fork.pid, *map(int, (tmp_path / "pids").read_text().split())]
    fork.kill()
    assert fork.wait(20) == -signal.SIGKILL
    assert all(map(ended, pids))


def test_one_whose_connection_is_lost_ends(begin):
    fork = begin(SLEEP)
    fork._connection.close()
    assert ended(fork.pid)


def test_waiting_has_an_end(begin):
    fork = begin(SLEEP)
    with pytest.raises(subprocess.TimeoutExpired):
        fork.wait(0.1)
    fork.kill()


def test_all_end_when_it_is_closed(begin):
    closed = ForkServer([])
    fork = begin(SLEEP, by=closed)
    closed.close()
    assert ended(fork.pid) and not closed.alive


@pytest.mark.parametrize("whom", ["who has it", "itself"])
def test_all_end_with_the_server(tmp_path, whom):
    """Whoever is killed: the process that has the server, or the server."""
    text = f"""
import os, time
from utils.process.forkserver import ForkServer
server = ForkServer([])
fork = server.run(['timeit', '-n1', '-r1', {SLEEP!r}], env={{}}, cwd='.', log=os.devnull)
print(os.getpid(), server._process.pid, fork.pid, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", text], env=environment(), stdout=subprocess.PIPE, text=True
    )
    owner, server, fork = map(int, process.stdout.readline().split())
    os.kill(owner if whom == "who has it" else server, signal.SIGKILL)
    assert ended(fork) and ended(server)
    process.kill()
    process.communicate()


def test_a_server_that_has_ended_is_known(begin):
    lost = ForkServer([])
    fork = begin(SLEEP, by=lost)
    os.kill(lost._process.pid, signal.SIGKILL)
    lost._process.wait()
    assert not lost.alive and fork.wait(20) == -signal.SIGKILL
    with pytest.raises(OSError, match="the process that forks has ended"):
        begin("0", by=lost)
