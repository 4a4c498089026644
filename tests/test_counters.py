"""What a card counted of a kernel, in the rows of its profile."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.process import card
from utils.timing import counters, ncu
from utils.timing.profile import profiled

H200 = "NVIDIA H200"
SIZES = {"n": 134217728}
LAUNCH = {"kernel": "swish_kernel", "nanoseconds": 500_000, "dram_read_bytes": 3e9}
BUSY = {"l1_share": 20.0, "l2_share": 50.0, "dram_share": 44.0, "issue_share": 56.0}
BUSY |= {"sm_share": 56.0, "memory_share": 44.0}


def answer(text=None):
    exercise = catalog.load("00_start_here/swish")
    source = catalog.solution_text(exercise) if text is None else text
    return compile_answer(exercise, source, backend="emulator")


def line_of(kernel, part):
    """The number of the line that holds it, from 1."""
    return 1 + next(i for i, text in enumerate(kernel.source.splitlines()) if part in text)


@pytest.fixture
def kernel(no_figures):
    """Its line has a load of x for each of two terms, which the card made one of."""
    kernel = answer()
    line = {
        "LDG": {"instructions": 4194304, "global_sectors": 16777216},
        "STG": {"instructions": 4194304, "global_sectors": 4 * 4194304},
        "MUFU": {"instructions": 3},
        "IMAD": {"instructions": 5},
    }
    entry = {
        "sizes": SIZES,
        "text": counters.digest(kernel.source),
        "launches": [LAUNCH | BUSY, LAUNCH | dict.fromkeys(BUSY, 0.0)],
        "lines": [{str(line_of(kernel, "expf")): line}, {"0": {"MUFU": {"instructions": 4}}}],
    }
    (no_figures / "profiles").mkdir()
    for gpu in ("NVIDIA L4", H200):
        stored = {"gpu": gpu, "date": "2026-11-26", "ncu": "2025.3", "kernels": {}}
        stored["kernels"][kernel.exercise.id] = entry
        (no_figures / f"profiles/{gpu.replace(' ', '_')}.json").write_text(json.dumps(stored))
    return kernel


def test_counts_are_those_of_the_text_at_its_size(kernel):
    assert counters.counted(kernel, SIZES, H200).gpu == H200
    assert counters.counted(kernel, SIZES, "NVIDIA L4").gpu == "NVIDIA L4"
    assert counters.counted(kernel, SIZES, "another").gpu  # whichever there is, and it says which
    assert counters.counted(kernel, {"n": 1000}, H200) is None
    other = answer(kernel.source.replace("1.0f", "1.00f"))
    assert counters.counted(other, SIZES, H200) is None


NCU = """#!/bin/sh
case "$*" in
*--version*) echo "Version 2025.3.1.0" ;;
*"--page raw") printf '"ID","Kernel Name","gpu__time_duration.sum"\\n"","","ns"\\n' &&
    printf '"0","swish_kernel(const float *, float *, int)","503,776"\\n' ;;
*--export*) test -x program && for word; do test -f "$word" && echo "$word" >>"$SEEN"; done ;;
esac
"""


def test_on_a_card_they_are_counted_now(no_figures, monkeypatch, tmp_path):
    """As far as there need be none: programs that say what nvcc and ncu would."""
    for name, text in {"ncu": NCU, "nvcc": "#!/bin/sh\ntouch program; chmod +x program\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setattr("utils.timing.measure.gpu", lambda: "NVIDIA L4")
    monkeypatch.setattr("utils.cuda.toolchain.card_architecture", lambda: "8.9")
    monkeypatch.setattr("utils.timing.sass.disassembled", lambda *_: {})
    kernel = answer()
    assert counters.now(kernel, SIZES) is None, "no GPU"
    kernel.backend = "cuda"
    made = counters.counted(kernel, {"n": 1000}, H200)
    assert str(made).startswith("Nsight Compute 2025.3.1.0 on an NVIDIA L4, 20")
    assert made.launches == [{"kernel": "swish_kernel", "nanoseconds": 503776}]
    assert [Path(path).name for path in (tmp_path / "seen").read_text().split()] == [
        *("program", "inputs")
    ]
    (tmp_path / "ncu").write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM'\n")
    assert counters.now(kernel, {"n": 1000}) is None, "counters may not be read"


def test_the_card_is_taken_while_they_are_counted_and_not_for_the_build(monkeypatch):
    held, plain = {}, subprocess.run

    def run(command, **how):
        held[" ".join(map(str, command[:2]))] = card._lock
        return plain("true", **how)

    kernel = answer()
    kernel.backend = "cuda"
    monkeypatch.setattr(counters.subprocess, "run", run)
    monkeypatch.setattr(counters.shutil, "which", lambda tool: tool)
    monkeypatch.setattr("utils.cuda.toolchain.card_architecture", lambda: "8.9")
    assert counters.now(kernel, {"n": 1000}) is None
    counts = {command for command, lock in held.items() if lock == card.ALONE}
    assert counts == {" ".join(["ncu", *ncu.COLLECT][:2])} and len(held) == 4


def test_they_stand_in_the_rows_of_the_profile(kernel):
    parts, lines, units, *_ = profiled(kernel, SIZES, H200).tables()
    at = lines.head.index("counted")
    counted = {row[2]: row[at] for row in lines.rows}
    assert counted == dict.fromkeys(("global load of x", "global store of out"), "4,194,304 × 4")
    executed = {row[0].partition(":")[0]: row[2] for row in units.rows}
    assert executed == {"FMA": "0", "MUFU": "7", "ALU": "5"}
    shares = {row[0]: row[2] for row in parts.rows}
    # Of two launches that took as long, one was busy.
    assert shares["instructions"] == "28%" and shares["DRAM"] == "22%"
    assert shares["latency"] == "–"
    assert "Nsight Compute 2025.3 on an NVIDIA H200, 2026-11-26; 1 ms" in str(parts)
    assert "6 GB from DRAM" in str(parts)


def test_without_counts_there_is_no_column_for_them(no_figures):
    assert all("counted" not in table.head for table in profiled(answer(), SIZES, H200).tables())


@pytest.mark.parametrize(
    ("sm", "memory", "limit"),
    [
        (56.0, 44.0, "latency"),
        (83.0, 62.0, "instructions"),
        (73.0, 87.0, "L1 and shared memory"),
        (7.0, 93.0, "DRAM"),
        (30.0, 70.0, "L2"),
    ],
)
def test_the_limit_is_the_one_that_nsight_compute_names(sm, memory, limit):
    shares = {"l1_share": 87.0, "dram_share": 93.2, "sm_share": sm, "memory_share": memory}
    one = counters.Counted(H200, "", "", [LAUNCH | shares], {})
    assert one.limit == limit
    assert (one.rule == limit) == (limit != "latency")


def test_what_is_nearly_as_busy_is_named_too():
    shares = {"sm_share": 61.0, "memory_share": 53.0}
    one = counters.Counted(H200, "", "", [LAUNCH | shares], {})
    assert one.limit == "instructions" and one.rule == "instructions and memory, nearly balanced"
