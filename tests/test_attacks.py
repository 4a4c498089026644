"""Kernels written to fool `check` are refused, for a fitting reason; unusual right ones pass."""

import re

import pytest
from support.attacks import PASSED, Attempt, attempts

from utils.cuda.instrumented import instrumented
from utils.ground.errors import Reason
from utils.ground.paths import ROOT

ATTACKS = attempts(ROOT / "tests/attacks")
UNUSUAL = attempts(ROOT / "tests/unusual")


TRIES = 3  # values are fresh each time, and an attack may be lucky once
LUCKIER = 30  # where sizes or values decide, of which each check draws a few
BY_LUCK = "beyond/", "chapters/", "families/"
# A size that is drawn meets any kind of values: of these a wrong one may well be NaN.
NOT_FINITE = re.compile(r", (NaN|infinite|zeros times infinite|not finite)[\w ]* values[,\n]")


def judged(attempt: Attempt, monkeypatch) -> None:
    if Reason.TIMEOUT in attempt.outcomes:
        monkeypatch.setattr("utils.judge.verdict.TIMEOUT", 3.0)  # it will take all of it
    monkeypatch.setattr("utils.judge.explain.THOROUGH", False)
    lucky = attempt.id.startswith(BY_LUCK)  # where its values pass, another rule may refuse it
    for _ in range(LUCKIER if lucky else TRIES):
        outcome, message = attempt.judge()
        if outcome == Reason.NAN and NOT_FINITE.search(message) and outcome not in attempt.outcomes:
            outcome = Reason.WRONG_VALUES
        if outcome in attempt.outcomes or not (lucky or outcome == PASSED):
            break
    assert outcome in attempt.outcomes, f"{attempt.place}: {outcome}: {message}"
    for words in attempt.says:
        assert words in message, f"{attempt.place}: {message}"


@pytest.mark.parametrize("attempt", ATTACKS, ids=lambda attempt: attempt.id)
def test_an_attack_is_refused(attempt, monkeypatch):
    assert PASSED not in attempt.outcomes
    judged(attempt, monkeypatch)


@pytest.mark.parametrize("attempt", UNUSUAL, ids=lambda attempt: attempt.id)
def test_an_unusual_kernel_passes_or_is_told_the_truth(attempt, monkeypatch):
    judged(attempt, monkeypatch)
    if PASSED in attempt.outcomes:
        assert instrumented(attempt.compiled()).warnings == ""
