"""What a wrong element comes from, beside it: its inputs, or what a wrong index stands for."""

from collections.abc import Callable

from torch import Tensor

from utils.course.cases import Case
from utils.course.exercise import Exercise
from utils.judge import oracle

Cue = Callable[[tuple[int, ...], float, float], str]  # of a place, the value and the right one


def cue(exercise: Exercise, case: Case, name: str, got: Tensor) -> Cue | None:
    """What tells of an element of output `name`; None where it comes from too many inputs."""
    words = exercise.shapes[name].split()
    tensors = {k: v for k, v in case.tensors.items() if k != name}
    if not got.is_floating_point():
        rows = [k for k in tensors if exercise.shapes[k].split()[:-1] == words]
        return _candidates(rows[0], tensors[rows[0]]) if len(tensors) == len(rows) == 1 else None
    spread = any(set(exercise.shapes[k].split()) - set(words) for k in tensors)
    if "groups" in case.sizes or spread or not tensors:
        return None
    fan = oracle.fan_in(exercise, case, oracle.values_of(case), [name])[name]
    shapes = {k: exercise.shapes[k].split() for k in tensors}
    return _inputs(words, shapes, tensors) if fan <= len(tensors) else None


def _inputs(words: list[str], shapes: dict[str, list[str]], tensors: dict[str, Tensor]) -> Cue:
    """Such as ", from y = 0.5, scale = -1"."""

    def tell(place: tuple[int, ...], got: float, want: float) -> str:
        at = dict(zip(words, place, strict=True))
        values = {k: t[tuple(at[word] for word in shapes[k])].item() for k, t in tensors.items()}
        return ", from " + ", ".join(f"{k} = {value:.8g}" for k, value in values.items())

    return tell


def _candidates(name: str, tensor: Tensor) -> Cue:
    """Such as ", where x[2, 7] = 1 and x[2, 6] = 0.5"."""

    def element(at: tuple[int, ...]) -> str:
        text = f"{name}[{', '.join(map(str, at))}]"
        inside = 0 <= at[-1] < tensor.shape[-1]
        return f"{text} = {tensor[at].item():.8g}" if inside else f"there is no {text}"

    def tell(place: tuple[int, ...], got: float, want: float) -> str:
        return f", where {element((*place, int(got)))} and {element((*place, int(want)))}"

    return tell
