"""Try the mutants that a machine makes of exercises' solutions, all of them where none is named.

    python -m tests.mutation 04.6

What survives and does not stand in survivors.txt is told, and ends this with exit code 1; so is
what stands there and is rejected now. build/mutation/ keeps what became of each mutant, so that it
goes on where it was stopped; after a change of the check begin with --fresh.
"""

import argparse
import sys
from collections import Counter

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.paths import workspace

from . import survivors, trial


def main() -> int:
    """Exit code 0 where all that survives is known."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tests.mutation", description=__doc__, formatter_class=form)
    parser.add_argument("which", nargs="*", help="04, 04.6 or row_min")
    parser.add_argument("--jobs", type=int, default=0, help="processes; else one for each core")
    parser.add_argument("--fresh", action="store_true", help="try again what was tried before")
    parser.add_argument("--share", type=int, default=trial.SHARE, help="percent of the mutants")
    arguments = parser.parse_args()
    journal = workspace().build / "mutation" / "journal.jsonl"
    if arguments.fresh:
        journal.unlink(missing_ok=True)
    exercises = _chosen(arguments.which)
    mutants = [mutant for e in exercises for mutant in trial.mutants(e, arguments.share)]
    known, reasons, unknown = survivors.known(), Counter(), 0
    for mutant, fate in trial.try_all(mutants, journal, arguments.jobs):
        reasons[fate.reason] += 1
        listed = mutant.name in known
        if fate.reason == trial.ALIVE and not listed:
            unknown += 1
            print(f"survives: {mutant}", flush=True)
        elif listed and fate.reason != trial.ALIVE:
            print(f"listed, but {fate.reason}: {mutant}", flush=True)
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print(f"{len(mutants):6} mutants, of which {unknown} survive without a reason in survivors.txt")
    return min(1, unknown)


def _chosen(which: list[str]) -> list[Exercise]:
    """The exercises of these numbers, chapters and names."""
    everything = catalog.exercises()
    if not which:
        return everything
    names = [(e, {e.number, e.topic[:2], e.topic, e.name, e.id}) for e in everything]
    if unknown := [word for word in which if not any(word in known for _, known in names)]:
        sys.exit(f"there is no exercise '{unknown[0]}'")
    return [exercise for exercise, known in names if known & set(which)]


if __name__ == "__main__":
    sys.exit(main())
