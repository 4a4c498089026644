"""Chapter 05's faults beside compute-sanitizer: the programs that it is run on, and how its words
are read."""

import json

import pytest

from benchmarks import calibrate, sanitize_faults
from utils.course import catalog, selection
from utils.emulator.programs import build_program
from utils.ground.paths import workspace
from utils.notebooks import documents

BROKEN = catalog.topic("05_debugging")
BAR = "=" * 9 + " "
RACE = (
    f"{BAR}COMPUTE-SANITIZER\n"
    f"{BAR}Error: Race reported between Write access at "
    "row_share_kernel(const float *, float *, int)+0x2b0 in row_share.cu:11\n"
    f"{BAR}    and Read access at row_share_kernel(const float *, float *, int)+0x300"
    " in row_share.cu:13 [1020 hazards]\n"
    f"{BAR}\n"
    f"{BAR}RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
)
OUTSIDE = (
    f"{BAR}COMPUTE-SANITIZER\n"
    f"{BAR}Invalid __global__ read of size 4 bytes\n"
    f"{BAR}    at laplace_kernel(const float *, float *, int, int)+0x210 in laplace.cu:14\n"
    f"{BAR}    by thread (3,1,0) in block (3,0,0)\n"
    f"{BAR}    Access to 0x7f8b4fa00320 is out of bounds\n"
    f"{BAR}    and is 1 bytes after the nearest allocation at 0x7f8b4fa00000 of size 800 bytes\n"
    f"{BAR}\n"
    f"{BAR}ERROR SUMMARY: 1 error\n"
)
NOTHING = f"{BAR}COMPUTE-SANITIZER\n{BAR}ERROR SUMMARY: 0 errors\n"


def test_words_are_read():
    (race,) = sanitize_faults.findings(RACE)
    assert (race["line"], race["other_line"], race["count"]) == (11, 13, 1020)
    (outside,) = sanitize_faults.findings(OUTSIDE)
    assert outside["kind"].endswith("which is out of bounds") and outside["line"] == 14
    assert sanitize_faults.findings(NOTHING) == []


def test_what_cannot_be_read_is_no_silence():
    new = f"{BAR}A new kind of finding\n" + NOTHING.replace("0 errors", "3 errors")
    (finding,) = sanitize_faults.findings(new)
    assert finding["kind"] == "not understood" and finding["count"] == 3
    (cut,) = sanitize_faults.findings("========= COMPUTE-SANITIZER\n")
    assert cut["kind"] == "no summary"


@pytest.mark.parametrize("name", BROKEN)
def test_each_program_runs_and_is_wrong(tmp_path, name):
    session = calibrate.Session(tmp_path, 60)
    fault = sanitize_faults.Fault(BROKEN[name], tmp_path)
    fault.program.symlink_to(build_program(fault.source))
    wrong, _, of = fault.alone(session).partition(" of ")
    assert of.endswith("values wrong")
    # Of all twelve, one is slow, and right.
    assert (int(wrong) > 0) == (name != "shift_rows")
    text = fault.source.read_text()
    assert text.startswith(catalog.starter_text(BROKEN[name])), "its lines keep their numbers"


def test_chapter_05_shows_what_is_stored(tmp_path):
    (path,) = (workspace().results / "sanitizers").glob("*.json")
    stored = json.loads(path.read_text())
    assert set(stored["faults"]) == set(BROKEN)
    cells = documents.read(selection.notebooks(["05"])[-1]).cells
    (text,) = (c.source for c in cells if "Beside compute-sanitizer" in c.source)
    table = sanitize_faults.table(stored, tmp_path)
    assert table in text
    assert sanitize_faults.caption(stored) in text
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    theirs = sum(set(row[2:-1]) != {"–"} for row in rows)
    ours = sum(row[-1] != "–" for row in rows)
    head = documents.read(selection.notebooks(["05"])[0]).cells[0].source
    assert f"NVIDIA's own tools see {theirs} of the twelve, `diagnose` {ours}." in head
