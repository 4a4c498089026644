"""The kernels that `profile` is held against Nsight Compute on: their programs and its tables."""

import pytest

from benchmarks import calibrate, profile_beside_ncu
from benchmarks.launch_once import LaunchOnce
from utils.course import catalog
from utils.emulator.programs import build_program
from utils.ground.paths import workspace
from utils.timing import sass


def test_a_program_launches_the_kernel_at_its_size(tmp_path):
    """One with scalars, headers and several inputs; at a size that the emulator runs in no time."""
    exercise = catalog.load("06_groupnorm/groupnorm_vectorized")
    sizes = {"rows": 3, "channels": 96, "groups": 6}
    launch = LaunchOnce(exercise, catalog.solution_text(exercise), sizes, tmp_path)
    launch.program.symlink_to(build_program(launch.source, [str(workspace().include)]))
    session = calibrate.Session(tmp_path / "logs", 60)
    session.run("alone", launch.command, 30)
    assert launch.wrong() == (0, 3 * 96)


def test_output_that_nobody_stored_is_wrong(tmp_path):
    exercise = catalog.load("00_start_here/swish")
    launch = LaunchOnce(exercise, catalog.solution_text(exercise), {"n": 40}, tmp_path)
    assert launch.wrong() == (40, 40)


def test_tables_are_read():
    raw = '==PROF== done\n"ID","Kernel Name"\n"0","void a::k<(int)3, b<c>>(const float *, int)"\n'
    (row,) = profile_beside_ncu.rows(raw)
    assert profile_beside_ncu.plain(row["Kernel Name"]) == "k"
    details = '"Rule Name","Rule Description"\n"SOLBottleneck","It ""waits"", long"\n"Other","x"\n'
    assert profile_beside_ncu.limits(details) == ['It "waits", long']
    assert sass.opcode("@!P0 LDG.E.128 R8, desc[UR8][R10.64]") == "LDG"
    assert sass.opcode("EXIT;") == "EXIT"


def test_instructions_are_added_up_by_line_and_opcode():
    texts = "LDG.E R1, desc[UR4][R2.64]", "LDG.E R3, desc[UR4][R4.64]", "EXIT"
    code = [sass.Instruction(16 * i, text, 8 if i < 2 else 9) for i, text in enumerate(texts)]
    seen = [
        {"offset": 16 * i, "sass": f"{text} ;", "inst_executed": 5.0}
        for i, text in enumerate(texts)
    ]
    lines = profile_beside_ncu.by_line(code, seen)
    assert lines == {"8": {"LDG": {"instructions": 10}}, "9": {"EXIT": {"instructions": 5}}}
    with pytest.raises(ValueError, match="is not"):
        profile_beside_ncu.by_line(code[:2], seen)
