"""A class of submissions, generated: what each student handed in, and what its grade must be.

The same seed gives the same class. Points are exact: partly right answers are mutants, of which it
is known by their construction what they do right.
"""

import copy
import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random

from support.hostility import FOLDERS, TEXTS, FolderAttack, TextAttack
from utils.course import catalog, mutants
from utils.course.exercise import Exercise
from utils.notebooks import documents

TOPICS = (
    "00_start_here",
    "01_naive_gemm",
    "02_shared_memory_tiling",
    "03_register_tiles",
    "04_reductions",
)
KINDS = {"perfect": 12, "partial": 18, "empty": 6, "broken": 12, "hostile": 12}  # of 60
# The share of the points of what is partly right, and why: see utils/grading/points.py.
ALL_BUT_GATES = 0.8  # right everywhere, without the technique
RACES = 0.6  # the same, and it races on large sizes
ONE_BLOCK = 0.55  # right and clean as long as a block, or a round, is enough
WRONG = 0.1  # reads and writes what it should; at the smallest sizes half of the values are right
UNCLEAN = 0.1  # works, with a hazard at the smallest sizes
NOTHING = 0.0  # not one value is right, or no end is reached
STARTER = 0.0  # not more than the starter does, whose kernel writes something, too
MUTANTS = {
    "swish": {
        "neighbours_apart": ALL_BUT_GATES,
        "one_block": ONE_BLOCK,
        "sign": NOTHING,
        "no_guard": UNCLEAN,
        "block_too_large": NOTHING,
    },
    "swish_grid_stride": {
        "chunks": ALL_BUT_GATES,
        "stride_of_one_block": ALL_BUT_GATES,
        "no_loop": ONE_BLOCK,
        "sign": NOTHING,
    },
    "gemm_naive": {"overwrites_sum": WRONG, "adds_to_c": NOTHING},
    "gemm_coalesced": {"neighbours_walk_down": ALL_BUT_GATES, "block_too_large": NOTHING},
    "gemm_tiled_race": {"no_second_barrier": NOTHING, "no_tiles": NOTHING},
    "sum_atomic": {
        "one_thread_does_all": ALL_BUT_GATES,
        "blocks_apart": ALL_BUT_GATES,
        "no_memset": NOTHING,
        "block_too_large": NOTHING,
    },
    "sum_tree": {"atomic_for_each": ALL_BUT_GATES, "no_memset": STARTER},
    "sum_sequential": {"thread_0_adds": ALL_BUT_GATES},
    "sum_warp": {"tree_in_shared": ALL_BUT_GATES, "step_16_missing": STARTER},
}
OTHERS = "the work of others"
ODD_NAMES = "=cmd()|'!A1", "-rf", "two\nlines", "\x1b[31mred", "%2e%2e", "a,b;c\td", "Ünïcødé"


@dataclass(frozen=True)
class Fate:
    """What an exercise must be graded as."""

    statuses: tuple[str, ...]
    points: float
    says: str = ""  # words of the message


@dataclass
class Student:
    """What was handed in by one, and what must come of it."""

    name: str
    kind: str
    texts: dict[str, str] = field(default_factory=dict)  # answers by exercise id
    fates: dict[str, Fate] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # words that notes must have
    attacks: list[str] = field(default_factory=list)

    def give(self, exercise: Exercise, text: str, status: str = "passed", share: float = 1) -> None:
        """Answer an exercise."""
        self.texts[exercise.id] = text
        self.fates[exercise.id] = Fate((status,), round(exercise.points * share, 2))

    def attack(self, exercise: Exercise, attack: TextAttack, outside: Path) -> None:
        """Answer an exercise with an attack."""
        self.texts[exercise.id] = attack.text(exercise, outside)
        self.fates[exercise.id] = Fate(attack.statuses, 0, attack.says)
        self.attacks.append(f"{attack.name} in {exercise.name}")

    def lose(self, notebook: str) -> None:
        """A notebook does not count."""
        for exercise in catalog.in_notebook(notebook):
            if exercise.id in self.fates:
                self.fates[exercise.id] = Fate(("not attempted",), 0)

    def mismatches(self, grade: dict) -> list[str]:
        """Where a grade is not what it must be."""
        lines = []
        for record in grade["exercises"]:
            fate = self.fates.get(record["exercise"], Fate(("not attempted",), 0))
            got = f"{record['status']}, {record['points']:g} points: {record['message'][:200]}"
            if record["status"] not in fate.statuses or record["points"] != fate.points:
                wanted = f"{'/'.join(fate.statuses)}, {fate.points:g} points"
                lines.append(f"{record['number']} {record['name']}: {got!r}, not {wanted}")
            elif fate.says not in record["message"]:
                lines.append(f"{record['number']} {record['name']}: {got!r} lacks '{fate.says}'")
            if not all(c.isprintable() or c in "\n\t" for c in record["message"]):
                lines.append(f"{record['number']} {record['name']}: {got!r} is not printable")
        total = round(sum(record["points"] for record in grade["exercises"]), 2)
        if total != grade["points"]:
            lines.append(f"{grade['points']} points are not the sum, {total}")
        lines += [f"no note says '{w}'" for w in self.notes if w not in "\n".join(grade["notes"])]
        return [f"{self.kind} {self.name!r}: {line}" for line in lines]


def exercises(topics: Iterable[str] = TOPICS) -> list[Exercise]:
    """What can earn points."""
    return [e for topic in topics for e in catalog.topic(topic).values() if e.number]


def generate(folder: Path, students: int = 60, seed: int = 0) -> list[Student]:
    """Write a class into `folder/class`, and beside it `folder/outside`, which must stay so."""
    random, outside = Random(seed), canary(folder)
    shares = [kind for kind, of_60 in KINDS.items() for _ in range(of_60)]
    kinds = sorted(shares[len(shares) * i // students] for i in range(students))
    made = []
    for kind in KINDS:
        made += _MAKERS[kind](kinds.count(kind), random, outside)
    for student in made:
        write(folder / "class", student)
    _spoil([s for s in made if s.kind == "broken"], folder / "class")
    hostile = [s for s in made if s.kind == "hostile"]
    attack_folders(hostile, FOLDERS, folder / "class", outside, made[0].name)
    return made


def canary(folder: Path) -> Path:
    """A folder that nobody may touch, with something worth reading and deleting in it."""
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "other.ipynb").write_text(OTHERS)
    return outside


def touched(folder: Path) -> list[str]:
    """What hostile work has done to the folder beside the class."""
    outside = folder / "outside"
    names = sorted(path.name for path in outside.iterdir())
    wrong = [f"{name} was written" for name in names if name != "other.ipynb"]
    kept = "other.ipynb" in names and (outside / "other.ipynb").read_text() == OTHERS
    return wrong + ["other.ipynb was touched"] * (not kept)


# --- the kinds


def _perfect(count: int, random: Random, outside: Path) -> Iterator[Student]:
    for number in range(count):
        student = Student(f"perfect-{number:02}", "perfect")
        for exercise in exercises():
            student.give(exercise, varied(exercise, random))
        yield student


def _partial(count: int, random: Random, outside: Path) -> Iterator[Student]:
    fates = {name: cycle(random.sample(list(m.items()), len(m))) for name, m in MUTANTS.items()}
    for number in range(count):
        student = Student(f"partial-{number:02}", "partial")
        for exercise in exercises():
            kind = random.choice(("right", "mutant", "untouched", "untouched"))
            if kind == "mutant" and exercise.name in fates:
                mutant, share = next(fates[exercise.name])
                student.give(exercise, mutated(exercise, mutant, random), "failed", share)
            elif kind != "untouched":
                student.give(exercise, varied(exercise, random))
        if number == 0:  # an endless loop, and an exit, that are nobody's intention
            first, *_, last = exercises()
            text = mutants_of(exercises()[1])["no_step"]
            student.give(exercises()[1], text, "timeout", 0)
            student.give(first, into_launcher(first, "if (n < 1000) exit(1);"), "crashed", 0)
            student.give(last, "// I have given up on this\n" * 3, "compile error", 0)
        yield student


def _empty(count: int, random: Random, outside: Path) -> Iterator[Student]:
    for number in range(count):
        yield Student(f"empty-{number:02}", "empty")


def _broken(count: int, random: Random, outside: Path) -> Iterator[Student]:
    """Right answers, the same ones, but for what `_spoil` does."""
    for number in range(count):
        student = Student(f"broken-{number:02}", "broken")
        for exercise in exercises():
            student.give(exercise, catalog.solution_text(exercise))
        yield student


def _hostile(count: int, random: Random, outside: Path) -> Iterator[Student]:
    """All attacks on texts, spread over students and small exercises; the others are honest."""
    return attackers(count, TEXTS, exercises(), outside)


def attackers(
    count: int, attacks: Iterable[TextAttack], among: list[Exercise], outside: Path
) -> Iterator[Student]:
    """Students who attack by texts, each in several exercises, and answer the others honestly."""
    attacks = list(attacks)
    for number in range(count):
        name = ODD_NAMES[number] if number < len(ODD_NAMES) else f"hostile-{number:02}"
        student = Student(name, "hostile")
        mine = attacks[number::count][: len(among)]  # all of them, where there are students enough
        for exercise, attack in zip(among, mine, strict=False):
            student.attack(exercise, attack, outside)
        for exercise in among[len(mine) :]:
            student.give(exercise, catalog.solution_text(exercise))
        yield student


_MAKERS = {
    "perfect": _perfect,
    "partial": _partial,
    "empty": _empty,
    "broken": _broken,
    "hostile": _hostile,
}


def attack_folders(
    students: list[Student],
    attacks: Iterable[FolderAttack],
    folder: Path,
    outside: Path,
    other: str,
) -> None:
    """Spread attacks by files over students. To each but the first, whose notebooks stay, comes one
    that takes a notebook's place."""
    attacks = list(attacks)
    taking = [attack for attack in attacks if attack.loses]
    adding = [attack for attack in attacks if not attack.loses]
    for number, student in enumerate(students):
        for attack in (*adding[number :: len(students)], *taking[number - 1 : number]):
            attack.act(folder / student.name, outside, folder / other)
            student.attacks.append(attack.name)
            student.notes += [attack.says] * bool(attack.says)
            if attack.loses:
                student.lose(attack.loses)


# --- texts


def varied(exercise: Exercise, random: Random) -> str:
    """The solution as another hand would write it: names, comments and spacing differ."""
    return _varied(exercise, catalog.solution_text(exercise), random)


def _varied(exercise: Exercise, text: str, random: Random) -> str:
    text = re.sub(
        rf"\b{exercise.name}_kernel\b", f"{exercise.name}_k{random.randrange(1000)}", text
    )
    words = random.choice(("my answer", "done", "second try", "see the lecture"))
    lines = []
    for line in f"// {words}, {random.randrange(10**6)}\n{text}".splitlines():
        if "// fault:" not in line and random.random() < 0.2:
            line = line.rstrip() + "  // " + random.choice(("ok", "checked", "why?"))
        lines += [line, *[""] * (not line.endswith("\\") and random.random() < 0.1)]
    text = "\n".join(lines) + "\n"
    return text.replace("    ", "\t") if random.random() < 0.3 else text


def mutants_of(exercise: Exercise) -> dict[str, str]:
    """The texts of an exercise's mutants, by name."""
    return {mutant.name: mutant.text for mutant in mutants.mutants(exercise)}


def mutated(exercise: Exercise, name: str, random: Random) -> str:
    """A mutant, written by another hand."""
    return _varied(exercise, mutants_of(exercise)[name], random)


def into_launcher(exercise: Exercise, statement: str) -> str:
    """The solution with a statement at the beginning of its launcher."""
    return TextAttack("", first=statement).text(exercise, Path())


# --- files


def write(folder: Path, student: Student, topics: Iterable[str] = TOPICS) -> Path:
    """The student's folder: the learner's notebooks with the answers in them."""
    mine = folder / student.name
    mine.mkdir(parents=True)
    for name in _notebooks(topics):
        (mine / f"{name}.ipynb").write_text(notebook(name, student.texts), encoding="utf-8")
    return mine


def _notebooks(topics: Iterable[str]) -> list[str]:
    return [name for name in catalog.notebooks() if catalog.topic_of(name) in topics]


@functools.cache
def _pristine(name: str):
    return documents.read(documents.notebook_of(name))


def notebook(name: str, texts: dict[str, str]) -> str:
    """The learner's notebook of a name, with these texts by exercise id."""
    book = copy.deepcopy(_pristine(name))
    for id, cell in documents.cuda_cells(book).items():
        if id in texts:
            cell.source = f"{documents.MAGIC} {id}\n{texts[id]}"
    return documents.to_text(book)


def _spoil(students: list[Student], folder: Path) -> None:
    for student, (name, spoil) in zip(students, cycle(_SPOILED.items())):
        spoil(student, folder / student.name)
        student.attacks.append(name)


def _without_semicolon(student: Student, mine: Path) -> None:
    exercise = exercises()[0]
    text = student.texts[exercise.id].replace("int threads = 256;", "int threads = 256")
    student.texts[exercise.id] = text
    student.fates[exercise.id] = Fate(("compile error",), 0, "swish")
    (mine / f"{exercise.topic}.ipynb").write_text(notebook(exercise.topic, student.texts))


def _cut_off(student: Student, mine: Path) -> None:
    path = mine / "01_naive_gemm.ipynb"
    path.write_text(path.read_text()[:-1000])
    student.lose("01_naive_gemm")
    student.notes.append("01_naive_gemm.ipynb cannot be read")


def _lists_of_lines(student: Student, mine: Path) -> None:
    path = mine / "02_shared_memory_tiling.ipynb"
    book = json.loads(path.read_text())
    for cell in book["cells"]:
        if isinstance(cell["source"], list):
            cell["source"] = "".join(cell["source"])
    path.write_text(json.dumps(book))


def _copies(student: Student, mine: Path) -> None:
    """An earlier, wrong copy of a notebook beside it."""
    swish = exercises()[0]
    older = notebook(swish.topic, {swish.id: mutants_of(swish)["sign"]})
    (mine / "00_start_here (1).ipynb").write_text(older)
    student.notes.append("swish stands in 2 places; counted: 00_start_here.ipynb")


def _renamed(student: Student, mine: Path) -> None:
    for path in list(mine.glob("0[0-2]*.ipynb")):
        path.rename(mine / f"final {path.name[:2]}.ipynb")


def _sources(student: Student, mine: Path) -> None:
    """A chapter's answers as .cu files, and no notebook of it."""
    (mine / "00_start_here.ipynb").unlink()
    for exercise in exercises(["00_start_here"]):
        (mine / f"{exercise.name}.cu").write_text(student.texts[exercise.id])


def _missing(student: Student, mine: Path) -> None:
    for path in list(mine.glob("03_register_tiles*.ipynb")):
        path.unlink()
    student.lose("03_register_tiles")


def _windows(student: Student, mine: Path) -> None:
    texts = {id: text.replace("\n", "\r\n") for id, text in student.texts.items()}
    for name in _notebooks(TOPICS):
        text = notebook(name, texts).replace("\n", "\r\n")
        (mine / f"{name}.ipynb").write_bytes(b"\xef\xbb\xbf" + text.encode())


def _below(student: Student, mine: Path) -> None:
    (mine / "homework" / "week 1").mkdir(parents=True)
    for path in list(mine.glob("*.ipynb")):
        path.rename(mine / "homework" / "week 1" / path.name)
    (mine / "homework" / ".ipynb_checkpoints").mkdir()
    (mine / "homework" / ".ipynb_checkpoints" / "00-checkpoint.ipynb").write_text("{")


def _cells_twice(student: Student, mine: Path) -> None:
    """The last cell of an exercise counts, also below a first try."""
    swish = exercises()[0]
    book = json.loads(notebook(swish.topic, {swish.id: mutants_of(swish)["sign"]}))
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 3}
    source = f"%%cuda {swish.id}\n{student.texts[swish.id]}".splitlines(keepends=True)
    book["cells"].append(cell | {"source": source})
    stride = exercises()[1]
    source = f"%%cuda {stride.id}\n{student.texts[stride.id]}"
    book["cells"].append(cell | {"source": source})
    (mine / f"{swish.topic}.ipynb").write_text(json.dumps(book))
    student.notes.append("swish stands in 2 places")


_SPOILED = {
    "no semicolon": _without_semicolon,
    "a notebook is cut off": _cut_off,
    "texts, not lists of lines": _lists_of_lines,
    "an older copy": _copies,
    "renamed": _renamed,
    ".cu files": _sources,
    "a notebook is missing": _missing,
    "Windows": _windows,
    "in a folder of its own": _below,
    "a cell twice": _cells_twice,
}
