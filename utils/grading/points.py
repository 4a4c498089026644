"""Points of an answer: which share each part of the work is worth."""

from collections.abc import Mapping

from utils.course.exercise import Exercise
from utils.judge import statements

# Of an answer whose kernels write to the outputs. Without gates, theirs goes to `all`.
SHARES = {"works": 0.10, "small": 0.25, "all": 0.25, "clean": 0.20, "gates": 0.20}
WORDS = {
    "works": "compiles, and its kernels write results",
    "small": "right on small sizes",
    "all": "right on all sizes",
    "clean": "no hazards",
    "gates": "uses the technique",
    "named": "the fault is named",
    "mended": "the kernel is mended",
}
NAMED = 0.4  # of an exercise that asks to name a fault


def shares(exercise: Exercise) -> dict[str, float]:
    """What each part of an exercise is worth; 1 in all."""
    if exercise.faulty:
        asked = statements.required(exercise) is not None
        return {"named": NAMED, "mended": 1 - NAMED} if asked else {"mended": 1.0}
    worth = dict(SHARES)
    if not exercise.gates:
        worth["all"] += worth.pop("gates")
    return worth


def earned(exercise: Exercise, credit: Mapping[str, object]) -> dict[str, float]:
    """The points of each part, from a judge.credit.Credit; of `exercise.points`."""
    parts = {**credit, "mended": all(credit.get(part) for part in ("small", "all", "clean"))}
    if exercise.gates:
        parts["mended"] = parts["mended"] and bool(credit.get("gates"))
    worth = shares(exercise)
    return {part: exercise.points * share * bool(parts[part]) for part, share in worth.items()}
