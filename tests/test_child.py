"""What is made of a process apart that says something else than the answer, or nothing."""

import contextlib
import io
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.processes import wait_until

from utils.process import child, proc
from utils.process.child import Child, Gone
from utils.process.guest import framing


class Plain(Child):
    """One that does nothing by itself: a test has the other end."""

    ended: int | None = None
    excess = killed = ""

    def status(self, within: float) -> int | None:
        return self.ended

    def _pids(self) -> list[int]:
        return []

    def _excess(self) -> str:
        return self.excess

    def _kill(self) -> None:
        self.killed = "killed"


@pytest.fixture
def pair() -> Iterator[tuple[Plain, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Plain(ours), theirs
        for end in (ours, theirs):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        while _ANSWERING:  # who answers yet, answers the test that has the file's number next
            _ANSWERING.pop().join()


_ANSWERING: list[threading.Thread] = []


def answering(theirs: socket.socket, answer: Callable[[framing.Channel], object]) -> None:
    """The other end takes a command, and then does this."""
    channel = framing.Channel(theirs.fileno())

    def answers() -> None:
        channel.command()
        answer(channel)

    _ANSWERING.append(threading.Thread(target=answers, daemon=True))
    _ANSWERING[-1].start()


def test_a_command_and_its_answer_have_blobs(pair):
    apart, theirs = pair
    channel = framing.Channel(theirs.fileno())

    def answers() -> None:
        command = channel.command()
        channel.tell({"told": command["word"]}, command["blobs"][::-1])

    threading.Thread(target=answers, daemon=True).start()
    blobs = [b"a", b"", b"bc"]
    assert apart.ask(10, "it", blobs, word="x") == ({"told": "x"}, blobs[::-1])


HEADERS = [
    {"text": 'é "quoted" \\ \n \x00 \ud800', "whole": -(1 << 60), "nothing": None, "yes": True},
    {"numbers": [0.1, 1e-320, float("inf")], "nested": {"list": [[], {}, [None]]}},
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_json_as_the_standard_library_has_it(header):
    sent = []
    framing.send(sent.append, header)
    assert json.loads(sent[0][4:]) == {**header, "blobs": []}
    assert framing.receive(io.BytesIO(b"".join(sent)).read) == (header, [])


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "{}", "[1]", "1 2", '{"blobs": []} {}', '{"blobs": [-1]}', "[" * 9999, "\xff"],
)
def test_what_is_no_header_is_no_message(text):
    sent = text.encode("latin-1")
    with pytest.raises(framing.Garbled):
        framing.receive(io.BytesIO(struct.pack("<I", len(sent)) + sent).read)


@pytest.mark.parametrize(
    "said",
    [
        lambda channel: channel._write(b"\xff\xff\xff\xff"),
        lambda channel: channel._write(struct.pack("<I", 2) + b"[]"),
        lambda channel: channel._write(struct.pack("<I", 2) + b"{}"),
        lambda channel: framing.send(channel._write, {}),  # without the token
        lambda channel: framing.send(channel._write, {"token": "0" * 32}),
        lambda channel: channel.tell({}, [b"more than was asked for"]),
        lambda channel: channel._write(b"\x80\0\0\0" + 128 * b"["),
    ],
)
def test_what_is_no_answer_ends_it(pair, said):
    apart, theirs = pair
    answering(theirs, said)
    with pytest.raises(Gone, match="answered out of turn") as gone:
        apart.ask(10, "it", most=8)
    assert apart.killed and not gone.value.late


def test_bytes_that_come_one_after_the_other_do_not_prolong_its_time(pair, monkeypatch):
    monkeypatch.setattr(child, "GRACE", 0.2)
    apart, theirs = pair

    def dribbles(channel):
        text = json.dumps({"blobs": []}).encode().ljust(4000)
        with contextlib.suppress(OSError):  # until nobody listens
            for byte in struct.pack("<I", len(text)) + text:
                theirs.send(bytes([byte]))
                time.sleep(0.005)

    answering(theirs, dribbles)
    start = time.monotonic()
    with pytest.raises(Gone) as gone:
        apart.ask(0.3, "it")
    assert gone.value.late and time.monotonic() - start < 2


def test_one_that_takes_nothing_in_is_late(pair, monkeypatch):
    apart, _ = pair
    with pytest.raises(Gone) as gone:
        apart.ask(0.1, "it", [bytes(1 << 24)])
    assert gone.value.late and apart.killed


@pytest.mark.parametrize(
    ("had", "wanting", "least", "most"),
    [
        (0.0, True, 0.4, 1.0),  # no core: four times as long
        (1.0, True, 0.1, 0.3),  # it had one
        (0.0, False, 0.1, 0.3),  # it sleeps
    ],
)
def test_one_that_is_given_no_core_is_waited_for_longer(
    pair, monkeypatch, had, wanting, least, most
):
    seconds = iter([0.0])
    monkeypatch.setattr(child.proc, "core_time", lambda pids: next(seconds, had))
    monkeypatch.setattr(child.proc, "want_cores", lambda pids: wanting)
    start = time.monotonic()
    with pytest.raises(Gone) as gone:
        pair[0].ask(0.1, "it")
    assert gone.value.late and least <= time.monotonic() - start < most


def test_of_a_break_in_which_nobody_looked_little_counts(monkeypatch):
    times = iter([0.0, 1.0, 60.0, 60.1, 3600.0])
    monkeypatch.setattr(child.time, "monotonic", lambda: next(times))
    limit = child.Limit(10, list)
    left = [limit.left() for _ in range(4)]
    assert left == pytest.approx([9.8, 9.6, 9.5, 9.3])


def test_the_time_on_cores_is_that_of_all_threads():
    program = "import threading\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
    program += "\nthreading.Event().wait()"
    with subprocess.Popen([sys.executable, "-c", program]) as other:
        wait_until(lambda: proc.core_time([other.pid]) > 0.5)
        assert proc.want_cores([other.pid])
        other.kill()
    assert proc.core_time([other.pid]) == 0.0 and not proc.want_cores([other.pid])


def test_one_that_does_too_much_is_ended_for_that(pair):
    apart, _ = pair
    apart.excess = "used more than it may"
    with pytest.raises(Gone, match="used more than it may") as gone:
        apart.ask(10, "it")
    assert apart.killed and not gone.value.late


@pytest.mark.parametrize(
    ("status", "words"),
    [(3, "with exit status 3"), (-9, "by signal 9"), (None, "closed the channel")],
)
def test_of_one_that_has_ended_is_told_how(pair, status, words):
    apart, theirs = pair
    apart.ended = status
    theirs.close()
    with pytest.raises(Gone, match=words) as gone:
        apart.ask(10, "it")
    assert gone.value.status == status and not gone.value.late
