"""Points of an answer: which share each part of the work is worth."""

from utils.course.exercise import Exercise
from utils.judge import statements
from utils.judge.credit import Credit

# Of an answer whose kernels write something right. Without gates, theirs goes to `all`.
SHARES = {"works": 0.10, "small": 0.25, "all": 0.25, "clean": 0.20, "gates": 0.20}
WORDS = {
    "works": "compiles, and half of the results are right on a small size",
    "small": "right on small sizes",
    "all": "right on all sizes",
    "clean": "right on small sizes, and no hazards",
    "gates": "right on small sizes, and by the technique",
    "speed": "fast on a GPU",
    "named": "the fault is named",
    "fixed": "the kernel is fixed",
}
# On a GPU, of what is for the technique, or for all sizes where no technique is asked for.
SPEED = 0.10
NAMED = 0.4  # of an exercise that asks to name a fault


def shares(exercise: Exercise, timed: bool = False) -> dict[str, float]:
    """What each part of an exercise is worth; 1 in all, whether or not it was `timed` on a GPU."""
    if exercise.faulty:
        stated = statements.required(exercise) is not None
        return {"named": NAMED, "fixed": 1 - NAMED} if stated else {"fixed": 1.0}
    worth = dict(SHARES)
    if not exercise.gates:
        worth["all"] += worth.pop("gates")
    if timed:
        worth["gates" if exercise.gates else "all"] -= SPEED
        worth["speed"] = SPEED
    return worth


def earned(exercise: Exercise, credit: Credit, tenths: float | None = None) -> dict[str, float]:
    """The points of each part; of `exercise.points`.

    `tenths` are those of the points for speed, from timing.speed; None where nothing was timed.
    What is fast and wrong earns none.
    """
    right = credit.small and credit.all and credit.clean
    parts: dict[str, float] = {part: getattr(credit, part) for part in (*SHARES, "named")}
    parts["fixed"] = right and (credit.gates or not exercise.gates)
    worth = shares(exercise, timed=tenths is not None)
    if tenths is not None and "speed" in worth:
        parts["speed"] = tenths / 10 * all(parts[part] for part in worth if part != "speed")
    return {part: exercise.points * share * float(parts[part]) for part, share in worth.items()}
