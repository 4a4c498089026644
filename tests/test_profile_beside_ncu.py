"""The kernels that `profile` is held against Nsight Compute on: their programs and its tables."""

from benchmarks import calibrate, profile_beside_ncu
from utils.course import catalog
from utils.emulator.programs import build_program
from utils.ground.paths import workspace
from utils.timing.launch_once import LaunchOnce


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


def test_bottlenecks_are_read():
    details = '==PROF== done\n"Rule Name","Rule Description"\n"Other","x"\n'
    details += '"SOLBottleneck","It ""waits"", long"\n'
    assert profile_beside_ncu.limits(details) == ['It "waits", long']
