"""Calls back to back: the GPU never waits, or nothing is told. On a GPU that is made of numbers."""

import sys

import pytest
import torch

from benchmarks.both_ways import Time
from utils.timing import sustained
from utils.timing.sustained import Looks


class Gpu:
    """Time passes for Python, which queues, and for the GPU, which works: milliseconds."""

    def __init__(self, monkeypatch, launch: float):
        self.python, self.done, self.launch = 0.0, 0.0, launch
        gpu = self

        class Event:
            def __init__(self, **how):
                self.at = 0.0

            def record(self):
                self.at = gpu.done

            def query(self):
                return gpu.python >= self.at

            def synchronize(self):
                gpu.python = max(gpu.python, self.at)

            def elapsed_time(self, other):
                return other.at - self.at

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)

    def call(self, milliseconds):
        """A call that takes as long, longer at first."""

        def called():
            self.python += self.launch
            slow = 2 if self.done < 100 else 1
            self.done = max(self.done, self.python) + slow * milliseconds

        return called


@pytest.fixture(autouse=True)
def nobody_else(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.process.card._path", lambda what: tmp_path / what)


def test_the_time_is_that_of_the_last_half(monkeypatch):
    gpu = Gpu(monkeypatch, launch=0.01)
    got = sustained.sustained([gpu.call(0.5), gpu.call(1.5)], 1.0)
    assert got.milliseconds == pytest.approx(1.0)
    assert gpu.done >= 1e3 * sustained.SECONDS
    assert (got.clock_mhz, got.watts) == (None, None)


def test_a_call_shorter_than_its_launch_is_not_told(monkeypatch):
    gpu = Gpu(monkeypatch, launch=0.02)
    assert sustained.sustained([gpu.call(0.01)], 0.01) is None
    gpu = Gpu(monkeypatch, launch=0.02)
    assert sustained.sustained([gpu.call(0.04)], 0.04).milliseconds == pytest.approx(0.04)


def test_a_long_call_is_not_made_again_and_again(monkeypatch):
    assert sustained.sustained([lambda: pytest.fail("called")], 101.0) is None


TELLS = """
import sys, time
for number in range(1000):
    print("[N/A], 1" if number < 3 else f"{1000 + number % 2}, {690.5}", flush=False)
    time.sleep(0.005)
"""


def test_the_card_is_looked_at_meanwhile():
    looks = Looks([sys.executable, "-c", TELLS])
    try:
        clock, watts = looks.since(0.0)
        assert 1000 <= clock <= 1001 and watts == 690.5
        assert looks.since(1e12) == (None, None)
    finally:
        looks.close()


def test_a_card_that_does_not_tell_costs_nothing_else(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("PATH", "")
    sustained._words.cache_clear()
    with sustained.looking() as looks:
        assert looks is None
    sustained._words.cache_clear()


def test_ratios_are_of_both_ways_where_both_are_known():
    slow, fast = Time(3.0, 3.2, 1700.4, 690.6), Time(0.75, 0.8)
    assert slow.over(fast) == "4.00 / 4.00" and slow.over(Time(1.5)) == "2.00"
    assert slow.cells() == ["3.0000", "3.2000", "1700", "691"]
    assert Time(1.0).cells() == ["1.0000", "–", "–", "–"]
