"""`python -m tests.mutation [NN[.M] ...]`: try the mutants of exercises, or of all."""

import argparse
import random
import sys
from collections import Counter

from utils.course import catalog
from utils.paths import workspace

from . import trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("which", nargs="*", help="04, 04.6 or a name; all where none is given")
    parser.add_argument("--jobs", type=int, default=0)
    given = parser.parse_args()
    exercises = [e for e in catalog.exercises() if not given.which or chosen(e, given.which)]
    mutants = [mutant for exercise in exercises for mutant in trial.mutants(exercise)]
    random.Random(0).shuffle(mutants)  # so that one learns of all of them early
    counts = Counter()
    journal = workspace().build / "mutation" / "journal.jsonl"
    for mutant, fate in trial.try_all(mutants, journal, given.jobs):
        counts[fate.reason] += 1
        if fate.reason == trial.ALIVE or fate.tries > 1:
            print(f"{fate.reason} {mutant}", flush=True)
    print(counts)
    return 0


def chosen(exercise, which):
    return any(word in (exercise.number, exercise.topic[:2], exercise.name) for word in which)


if __name__ == "__main__":
    sys.exit(main())
