"""Beginners' mistakes: the report names what is wrong, or its line.

`tests/mistakes/NN_topic/EXERCISE.diff` has them as differences from the solution, in the form of
`tests/attacks`. Behind `says:` stand words of the report: the line that is wrong, or what a teacher
would say of it. A hint names a cause: one that stands neither there nor behind `hint:` (what is so,
but says less) is a wrong one. A share is tried, drawn anew each time; with WORKBOOK_MISTAKES=all,
all of them.
"""

import os
import random

from support.attacks import attempts

from utils.ground.paths import ROOT
from utils.judge import explain, reruns, smallest
from utils.judge.mistakes import hypotheses

FOLDER = ROOT / "tests/mistakes"
MISTAKES = attempts(FOLDER)
SHARE = 10  # mistakes: some ten seconds
EARLY = 330  # of chapters 00 to 05, at least
UNNAMED = 0.1  # of which a report shows only what follows from them, at most


def test_a_beginners_mistake_is_named(monkeypatch):
    for module in (explain, hypotheses, reruns, smallest):  # however busy the machine is
        monkeypatch.setattr(module, "TIMEOUT" if module is reruns else "SECONDS", 60.0)
    every = os.environ.get("WORKBOOK_MISTAKES") == "all"
    failures = []
    for mistake in MISTAKES if every else random.sample(MISTAKES, SHARE):
        outcome, report = mistake.judge(seed=1)
        missing = [words for words in mistake.says if words not in report]
        if outcome not in mistake.outcomes or missing:
            failures.append(f"{mistake.place}: {outcome}, without {missing}:\n{report}")
        known = mistake.says + mistake.hints
        hints = [line for line in report.splitlines() if line.startswith("hint: ")]
        if wrong := [line for line in hints if not any(words in line for words in known)]:
            failures.append(f"{mistake.place}: nobody has found that this is so: {wrong}")
    assert failures == [], "\n\n".join(failures)


def test_of_nearly_all_mistakes_the_report_says_what_they_are():
    silent = [mistake for mistake in MISTAKES if not mistake.says]
    marked = sum(path.read_text().count("# unnamed: ") for path in FOLDER.rglob("*.diff"))
    assert len(silent) == marked <= UNNAMED * len(MISTAKES)


def test_the_mistakes_are_many_and_of_many_exercises():
    early = [mistake for mistake in MISTAKES if mistake.exercise.topic[:2] <= "05"]
    assert len(early) >= EARLY
    assert len({mistake.exercise.name for mistake in MISTAKES}) > 20
