"""Answers that look alike: what to read side by side. It proves nothing by itself.

Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003), as in MOSS: names, numbers, comments and
layout do not count, nor does what all were given, nor what many have. copydetect on PyPI does the
first part, but its fingerprints differ from run to run, and it compares every pair.
"""

import csv
import io
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.grading import inert, pages
from utils.ground import files
from utils.ground.wording import many

TITLE = "Answers that look alike"
THRESHOLD = 80.0  # percent
SOLUTION = "(the workbook's solution)"  # takes part, as if it were a student
LEAST = 60  # tokens of a student's own; fewer are alike by themselves
FEWEST = 12  # prints, about 30 tokens, that are left to compare
SHOWN = 200  # pairs side by side
COMMON = 10  # a passage that more different texts have is how one writes it (-m of MOSS)
GRAM, WINDOW = 10, 4  # of GRAM + WINDOW - 1 equal tokens in a row at least one print is kept
SAME, RENAMED = "the same text", "the same but for names, numbers, comments and layout"
_TOKEN = re.compile(
    r"""(?P<gap>\\\n|\s+|//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    |(?P<number>\.?\d(?:[eE][+-]|[\w.])*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>.)""",
    re.DOTALL | re.VERBOSE,
)
_WORDS = frozenset(  # that nobody can give another name; those with "__" in front are as well
    "if else for while do switch case break continue return struct template typename const auto "
    "constexpr static inline void bool char int unsigned long float double float2 float4 "
    "threadIdx blockIdx blockDim gridDim".split()
)
_POWERS = np.array([pow(0x9E3779B97F4A7C15, i, 1 << 64) for i in range(GRAM)], dtype=np.uint64)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

Hashes = NDArray[np.uint64]  # of tokens, or of grams


@dataclass(frozen=True)
class Alike:
    """Two answers to one exercise."""

    exercise: str  # id
    percent: float  # of the own prints of the one that has fewer, those that the other has
    how: str = ""  # SAME, RENAMED, or nothing


@dataclass(frozen=True)
class Pair:
    """Two students with answers that are alike, those most alike first."""

    first: str
    second: str
    exercises: tuple[Alike, ...]

    @property
    def percent(self) -> float:
        """The highest of its exercises."""
        return self.exercises[0].percent


def report(answers: Mapping[str, Mapping[str, str]], threshold: float = THRESHOLD) -> list[Pair]:
    """The pairs of students with answers (student -> exercise id -> text) alike by `threshold`
    percent or more; those with most such answers first.

    Of answers that are the same, each is paired with the first, not with each other one.
    """
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for student in sorted(answers):
        for id, text in answers[student].items():
            texts[id][student] = text
    by_pair: dict[tuple[str, str], list[Alike]] = defaultdict(list)
    for id in sorted(texts):
        for pair, alike in _alike(catalog.load(id), texts[id], threshold):
            by_pair[pair].append(alike)
    pairs = [
        Pair(*students, tuple(sorted(alike, key=lambda a: -a.percent)))
        for students, alike in by_pair.items()
    ]
    return sorted(pairs, key=lambda p: (-len(p.exercises), -p.percent, p.first, p.second))


def write(
    pairs: Sequence[Pair],
    path: str | Path,
    answers: Mapping[str, Mapping[str, str]],
    threshold: float = THRESHOLD,
) -> Path:
    """Write the pairs to a .csv file, a line for each of their exercises, to a .md file beside it,
    a line for each pair, and to a .html file, their answers side by side. The path of the first.

    `answers` and `threshold` are what report() got.
    """
    path = Path(path).with_suffix(".csv")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("first", "second", "exercise", "percent", "how"))
    for pair in pairs:
        students = inert.cell(pair.first), inert.cell(pair.second)
        for alike in pair.exercises:
            writer.writerow((*students, alike.exercise, f"{alike.percent:.0f}", alike.how))
    files.write_text(path, table.getvalue())
    files.write_text(path.with_suffix(".md"), _markdown(pairs, threshold))
    files.write_text(path.with_suffix(".html"), _page(pairs, answers, threshold))
    return path


def _markdown(pairs: Sequence[Pair], threshold: float) -> str:
    parts = [f"# {TITLE}", _introduction(threshold)]
    if not pairs:
        return "\n\n".join([*parts, "None were found."]) + "\n"
    rows = ["| first | second | exercises |", "| --- | --- | --- |"]
    for pair in pairs:
        students = inert.escaped(pair.first), inert.escaped(pair.second)
        alikes = [
            f"`{alike.exercise}` {alike.percent:.0f} %" + f" ({alike.how})" * bool(alike.how)
            for alike in pair.exercises
        ]
        rows.append(f"| {' | '.join(students)} | {'<br>'.join(alikes)} |")
    return "\n\n".join([*parts, f"{many(len(pairs), 'pair')}.", "\n".join(rows)]) + "\n"


def _introduction(threshold: float) -> str:
    return (
        "Read these side by side. Short answers to one question are often alike without a copy. "
        f"Reported from {threshold:g} % on. "
        f"Left out: answers with fewer than {LEAST} tokens beside the starter and the worked "
        f"kernels, and passages that more than {COMMON} different answers have. "
        "Of answers that are the same, each is paired with the first."
    )


# --- side by side


def _page(pairs: Sequence[Pair], answers: Mapping[str, Mapping[str, str]], threshold: float) -> str:
    """A page of HTML that needs no other file: of each pair the answers, with the lines marked that
    the other has as well, and that are not the starter's."""
    parts = [f"<p>{escape(_introduction(threshold))} The lines that both have are marked.</p>"]
    for pair in pairs[:SHOWN]:
        for alike in pair.exercises:
            exercise = catalog.load(alike.exercise)
            texts = [
                catalog.solution_text(exercise) if name == SOLUTION else answers[name][exercise.id]
                for name in (pair.first, pair.second)
            ]
            common = _common(exercise, *texts)
            how = f" ({alike.how})" if alike.how else ""
            parts.append(f"<h2>{escape(exercise.id)}, {alike.percent:.0f} %{escape(how)}</h2>")
            cells = "".join(
                f"<td><h3>{escape(inert.line(name))}</h3><pre>{_marked(text, common)}</pre></td>"
                for name, text in zip((pair.first, pair.second), texts, strict=True)
            )
            parts.append(f"<table><tr>{cells}</tr></table>")
    if len(pairs) > SHOWN:
        parts.append(f"<p>{many(len(pairs) - SHOWN, 'more pair')}: see the table.</p>")
    return pages.page(TITLE, "\n".join([f"<h1>{TITLE}</h1>", *parts, ""]), _STYLE)


def _common(exercise: Exercise, one: str, other: str) -> Hashes:
    """The grams that both texts have, and no starter."""
    grams: Hashes = np.intersect1d(_grams(_tokens(one)), _grams(_tokens(other)))
    return grams[~np.isin(grams, _starter_hashes(exercise))]


def _marked(text: str, common: Hashes) -> str:
    """HTML of a text, its lines that hold such grams marked."""
    lines = [text.count("\n", 0, match.start()) for match in _code(text)]
    held = set[int]()
    for at in np.flatnonzero(np.isin(_grams(_tokens(text)), common)):
        held.update(lines[at : at + GRAM])
    shown = inert.visible(text.rstrip("\n")).split("\n")
    marked = (
        f"<mark>{escape(line)}</mark>" if number in held and line.strip() else escape(line)
        for number, line in enumerate(shown)
    )
    return "\n".join(marked)


_STYLE = """body { max-width: none; }
table { table-layout: fixed; }
pre { font-size: 0.8rem; }
mark { background: #ffe08a; color: #1c1e21; }
"""


# --- one exercise


def _alike(
    exercise: Exercise, texts: Mapping[str, str], threshold: float
) -> Iterator[tuple[tuple[str, str], Alike]]:
    """The pairs. Time and memory grow with the texts: of no print are many owners compared."""
    authors: dict[str, str] = {}  # text -> who has it, first
    same = []
    for student, text in ({SOLUTION: catalog.solution_text(exercise)} | dict(texts)).items():
        first = authors.setdefault(text, student)
        if first != student:
            same.append((text, student))
    starter = _starter_hashes(exercise)
    streams: dict[bytes, str] = {}  # tokens -> whose they are, first
    prints: dict[str, set[int]] = {}
    owning = set()
    for text, student in authors.items():
        tokens = _tokens(text)
        grams = _grams(tokens)
        own = ~np.isin(grams, starter)
        if _covered(own) < LEAST:
            continue
        owning.add(text)
        first = streams.setdefault(tokens.tobytes(), student)
        if first != student:
            yield (first, student), Alike(exercise.id, 100.0, RENAMED)
        else:
            chosen = _winnowed(grams)
            prints[student] = set(grams[chosen[own[chosen]]].tolist())
    for text, student in same:
        if text in owning:
            yield (authors[text], student), Alike(exercise.id, 100.0, SAME)
    yield from _sharing(exercise, prints, threshold)


def _sharing(
    exercise: Exercise, prints: Mapping[str, set[int]], threshold: float
) -> Iterator[tuple[tuple[str, str], Alike]]:
    owners = defaultdict(list)
    for student, own in prints.items():
        for one in own:
            owners[one].append(student)
    rare = [students for students in owners.values() if len(students) <= COMMON]
    sizes = Counter(student for students in rare for student in students)
    shared = Counter(pair for students in rare for pair in combinations(students, 2))
    for pair, count in shared.items():
        least = min(sizes[student] for student in pair)
        if least >= FEWEST and (percent := 100 * count / least) >= threshold:
            yield pair, Alike(exercise.id, percent)


def _starter_hashes(exercise: Exercise) -> Hashes:
    """The grams of what every student had before: the starter, and the worked kernels."""
    worked = [e for e in catalog.topic(exercise.topic).values() if not e.number]
    texts = [catalog.starter_text(e) for e in (exercise, *worked)]
    return np.unique(np.concatenate([_grams(_tokens(text)) for text in texts]))


def _code(text: str) -> Iterator[re.Match[str]]:
    """The tokens of a text, without its gaps."""
    return (match for match in _TOKEN.finditer(text) if match.lastgroup != "gap")


def _tokens(text: str) -> Hashes:
    """A number for each token of C++, the same for all names and all numbers."""
    tokens = []
    for match in _code(text):
        kind, token = str(match.lastgroup), match[0]
        kept = kind == "mark" or token in _WORDS or token.startswith("__")
        tokens.append(zlib.crc32((token if kept else kind).encode("utf-8", "replace")))
    return np.array(tokens, dtype=np.uint64)


def _grams(tokens: Hashes) -> Hashes:
    """A hash of each GRAM tokens in a row."""
    if len(tokens) < GRAM:
        return np.empty(0, dtype=np.uint64)
    hashes: Hashes = (sliding_window_view(tokens, GRAM) * _POWERS).sum(axis=1, dtype=np.uint64)
    mixed: Hashes = (hashes ^ (hashes >> np.uint64(33))) * _MIX
    return mixed


def _winnowed(grams: Hashes) -> NDArray[np.int64]:
    """Which grams are kept: the least of each WINDOW in a row."""
    if len(grams) < WINDOW:
        return np.arange(len(grams))
    least = sliding_window_view(grams, WINDOW).argmin(axis=1)
    return np.unique(least + np.arange(len(least)))


def _covered(own: NDArray[np.bool_]) -> int:
    """Tokens that stand in none of the grams that are given."""
    starter = np.convolve(~own, np.ones(GRAM, dtype=int)) if len(own) else own
    return len(starter) - int(np.count_nonzero(starter))
