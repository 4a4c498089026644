"""The rooms of utils/: what may use what. A reader knows from the layout where a thing lives."""

import ast
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from utils.ground.paths import ROOT

UTILS = ROOT / "utils"
# Each layer may use those below it, and of its own layer nobody but itself.
LAYERS = (
    ("__init__",),  # what notebooks import: it names where its functions live
    ("cli", "magics"),  # the doors
    ("doctor",),
    ("grading",),
    ("notebooks",),
    ("timing",),
    ("judge", "diagrams"),
    ("course", "watch"),
    ("cuda",),
    ("process",),
    ("emulator",),
    ("ground",),
)
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
MODULES = sorted(path for path in UTILS.rglob("*.py"))
GUESTS = sorted((UTILS / "process/guest").glob("*.py"))  # programs, and what those import


def room(module: str) -> str:
    """The room of `utils.cuda.compiler`: cuda."""
    return module.split(".")[1] if "." in module else "__init__"


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """The modules of utils that a module imports, anywhere in it, and those that it names."""
    known, modules = {dotted(module) for module in MODULES}, set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "utils":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {name if name in known else node.module for name in names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name.startswith("utils.")}
        elif isinstance(node, ast.Constant) and node.value in known:  # for import_module()
            modules.add(node.value)
    return modules - {dotted(path), "utils"}


def test_every_room_has_its_floor():
    assert {room(dotted(path)) for path in MODULES} == set(LAYER)


def test_there_are_few_rooms_and_few_modules_outside_of_them():
    rooms = [path for path in UTILS.iterdir() if (path / "__init__.py").is_file()]
    assert len(rooms) <= 11 and len(list(UTILS.glob("*.py"))) <= 4 and len(LAYERS) <= 12


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_import_runs_back_up(path):
    mine = LAYER[room(dotted(path))]
    for module in imported(path):
        theirs = LAYER[room(module)]
        same = room(module) == room(dotted(path))
        assert theirs > mine or same, f"{dotted(path)} uses {module}"


@pytest.mark.parametrize("path", GUESTS, ids=dotted)
def test_what_runs_in_a_process_apart_imports_nothing_of_utils(path):
    """There is no `utils` in a box, and no PyTorch where kernels run."""
    apart = {"model", "machine"}  # a model's process has PyTorch
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            taken = set() if node.level == 1 else {node.module or ""}
        elif isinstance(node, ast.Import):
            taken = {alias.name for alias in node.names}
        else:
            continue
        known = sys.stdlib_module_names | ({"torch"} if path.stem in apart else set())
        strange = {name for name in taken if name.split(".")[0] not in known}
        assert not strange, f"{dotted(path)} imports {strange}"


def test_no_modules_import_each_other_in_a_circle():
    uses = {dotted(path): imported(path) for path in MODULES}
    done: set[str] = set()
    while ready := {m for m in uses if m not in done and uses[m] <= done}:
        done |= ready
    rest = set(uses) - done
    assert not rest, f"among these is a circle: {sorted(rest)}"


def test_every_module_of_a_room_is_used_from_somewhere():
    """Dead code goes: a module that only its test knows is dead."""
    doors = {"utils", "utils.cli", *map(dotted, GUESTS)}
    doors.add("utils.grading.nbval_plugin")  # pytest's
    doors.add("utils.grading.assess")  # what the plugin asks a notebook's kernel for
    doors.add("utils.notebooks.redraw")  # make pictures
    doors.add("utils.grading.rubric")  # a program
    used = set(chain.from_iterable(imported(path) for path in MODULES))
    views = {m for m in map(dotted, MODULES) if m.startswith("utils.diagrams.views.")}
    packages = {dotted(path) for path in MODULES if path.name == "__init__.py"}
    written = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "kernels").glob("*/spec.py")]
    texts = "".join(path.read_text() for path in written)
    for module in {dotted(path) for path in MODULES} - used - doors - views - packages:
        home, _, name = module.rpartition(".")
        taken = rf"from {re.escape(home)} import ([\w ]+, )*{name}\b"
        assert module in texts or re.search(taken, texts), f"nobody uses {module}"


def test_what_tests_share_stands_in_support():
    """No test file imports another, nor does a program that a test starts."""
    named = re.compile(r"^ *(?:from|import) +(?:tests\.)?test_\w+", re.MULTILINE)
    for path in (ROOT / "tests").rglob("*.py"):
        taken = named.findall(path.read_text())
        assert not taken, f"{path.name}: {taken}; move what they share to tests/support/"


def test_no_module_beside_a_program_hides_one_of_pythons_own():
    """`python limited.py` looks there first, so `import operator` would find ours."""
    beside = {path.stem for path in GUESTS}
    assert not beside & sys.stdlib_module_names
