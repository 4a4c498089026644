"""What came of the calls of a trial, call by call."""

from collections.abc import Sequence

from utils.emulator.reports import Report
from utils.judge.models import accuracy
from utils.judge.models.accuracy import Truth
from utils.judge.models.calls import (
    Answer,
    Call,
    gradients_right,
    outputs_among,
    outputs_of,
    place_of,
    same_inputs,
    whose,
)
from utils.judge.models.plan import Made
from utils.judge.models.verdict import Rejected, Why
from utils.judge.models.work import Work


class Judging:
    """Calls and answers, in order. `run` raises Rejected; `notes` are on what was refused."""

    def __init__(
        self,
        made: Sequence[Made],
        calls: Sequence[Call],
        answers: Sequence[Answer],
        hazards: Sequence[Report],
        work: Work,
    ):
        self.made = {model.number: model for model in made}
        self.calls, self.answers, self.hazards = calls, answers, hazards
        self.notes: list[str] = []
        self.work = work

    def run(self) -> None:
        """First what the process tells against itself, then the values."""
        for number, answer in enumerate(self.answers):
            if refused := answer.header.get("refused"):
                place = place_of(self.calls[number], number, self.calls) if self._is(number) else ""
                what = f"{place}: forward asks PyTorch for {refused}; {self.work}"
                raise Rejected(Why.LIBRARY, f"{what} must be its own kernels' work")
        if self.hazards:
            raise Rejected(Why.HAZARD, str(self.hazards[0]))
        self._refusals()
        answered = [i for i in range(len(self.calls)) if not self.answers[i].raised]
        expected = {i: self.calls[i].expected(self._of(i).reference) for i in answered}
        for number in answered:
            self._one(number, expected)
        for number in answered:
            if self.calls[number].grad_output is not None:
                names = self.calls[number].wanted(self._names(number))
                place = self._place(number)
                gradients_right(self.answers[number], expected[number], names, place)

    def _is(self, number: int) -> bool:
        return number < len(self.calls)

    def _of(self, number: int) -> Made:
        return self.made[self.calls[number].made]

    def _names(self, number: int) -> list[str]:
        return [name for name, _ in self._of(number).reference.named_parameters()]

    def _place(self, number: int) -> str:
        return f"{self._of(number).size}: {place_of(self.calls[number], number, self.calls)}"

    def _refusals(self) -> None:
        """A size that is not the first may be refused, all of it, and inputs that are strided."""
        raised = [i for i in range(len(self.calls)) if self.answers[i].raised]
        for number in raised:
            call, said = self.calls[number], self.answers[number].raised
            alike = [i for i in range(len(self.calls)) if self.calls[i].made == call.made]
            whole = self._of(number).size != self._of(0).size and set(alike) <= set(raised)
            if self.answers[number].header.get("foreign"):
                raise Rejected(Why.NOT_A_TENSOR, f"{self._place(number)}: {said}")
            if not whole and not call.strided:
                raise Rejected(Why.RAISED, f"with {self._place(number)}: {said}")
            what = self._of(number).size if whole else "inputs that are not contiguous"
            note = f"Not judged: {what}, which it refuses: {said}"
            if note not in self.notes:
                self.notes.append(note)

    def _one(self, number: int, expected: dict[int, dict[str, Truth]]) -> None:
        call, answer, place = self.calls[number], self.answers[number], self._place(number)
        wanted = outputs_among(expected[number])
        outputs = outputs_of(answer, wanted, place)
        same_inputs(call, answer, self._names(number), place)
        late = answer.kept != answer.output
        for i, (output, truth) in enumerate(zip(outputs, wanted, strict=True)):
            if not (problem := accuracy.deviation(output, truth)):
                continue
            if late:
                raise Rejected(Why.CHANGED, f"{place}: it was not done when it was returned")
            others = {j: e[accuracy.named(i)] for j, e in expected.items() if j != number}
            if (other := whose(output, others)) is not None:
                raise Rejected(Why.STALE, f"{place}: it returned what call {other + 1} asks for")
            which = place if len(outputs) == 1 else f"{place}: {accuracy.named(i)}"
            raise Rejected(Why(problem[0]), f"{which}: {problem[1]}")
        if late:
            raise Rejected(Why.CHANGED, f"{place}: a later call has changed what this one returned")
