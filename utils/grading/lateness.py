"""When something was handed in, by which clock, and how many days late that is."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

from utils.grading import tables
from utils.grading.tables import Row
from utils.grading.workdir import workdir
from utils.ground import files
from utils.ground.errors import WorkbookError

TIMESTAMP = "timestamp.txt"  # nbgrader's, beside what was collected
LISTED = "the list of times"
COMMIT = "last commit"
_WHEN = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?"
    r"[ ]?(?P<zone>Z|[+-]\d\d:?\d\d|[A-Za-z]+(?:/[A-Za-z_+-]+)*)?"
)


class Clock(StrEnum):
    """By what a submission's time is known."""

    AUTO = "auto"  # the first of the others that there is
    TIMESTAMP = "timestamp"
    GIT = "git"
    FILES = "files"


@dataclass(frozen=True)
class Deadline:
    """Until when a student's work is in time."""

    due: datetime | None = None
    grace: timedelta = timedelta()  # that costs nothing

    def days_late(self, moment: float) -> int:
        """Begun days between its end and a moment in seconds since 1970."""
        if self.due is None or not moment:
            return 0
        end = self.due + self.grace
        late = (datetime.fromtimestamp(moment, UTC).replace(microsecond=0) - end).total_seconds()
        return max(0, int(-(-late // 86400)))

    def of(self, person: Mapping[str, str], path: Path) -> "Deadline":
        """A student's own, who may have columns `due` and `grace` (hours) in the roster.

        Raises WorkbookError for what is no time or no number.
        """
        who = person.get(tables.KEY, "")
        due, grace = self.due, self.grace
        if text := person.get("due", "").strip():
            due = when(text, f"{path}: the due time of {who!r}")
        if text := person.get("grace", "").strip():
            hours = tables.as_number(text, f"the hours of grace of {who!r}", path)
            grace = timedelta(hours=hours)
        return Deadline(due, grace)


def when(text: str, what: str) -> datetime:
    """A time such as "2026-11-30 23:59:00.5 Europe/Berlin", as nbgrader and ISO 8601 write it; in
    local time where no zone stands there. Raises WorkbookError, which names it as `what`."""
    match = _WHEN.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        zone = match["zone"] or ""
        moment = datetime.fromisoformat(f"{match['day']}T{match['time'] or '23:59:59'}")
        if not zone:
            return moment.astimezone()
        if zone in ("Z", "UTC", "GMT"):
            return moment.replace(tzinfo=UTC)
        if zone[0] in "+-":
            return datetime.fromisoformat(f"{moment.isoformat()}{zone}")
        return moment.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, OSError, KeyError, OverflowError):
        raise WorkbookError(
            f"{what} is {text.strip()!r}; write it as in 2026-11-30T23:59, with a zone such as "
            "+01:00 or Europe/Berlin behind it where it is not local time"
        ) from None


def listed(path: Path | None) -> dict[str, datetime]:
    """Times from a CSV file with the columns student_id and timestamp. Raises WorkbookError."""
    rows: dict[str, Row] = tables.read(path) if path else {}
    times = {}
    for id, row in rows.items():
        if "timestamp" not in row:
            raise WorkbookError(f"{path} has no column timestamp; it has {', '.join(row)}")
        if text := row["timestamp"].strip():
            times[id] = when(text, f"{path}: the timestamp of {id!r}")
    return times


def moment(
    places: Iterable[Path], newest: float, clock: Clock = Clock.AUTO
) -> tuple[float, str, list[str]]:
    """When a student's work was handed in, in seconds since 1970, what says so ("" for the newest
    of the files), and what to note.

    Whoever can write the files can write these times: nbgrader writes timestamp.txt when it
    collects, and a commit's time is its author's.
    """
    folders = [folder for place in places if place.is_dir() for folder in _near(place)]
    notes: list[str] = []
    if clock in (Clock.AUTO, Clock.TIMESTAMP):
        if times := list(_stamped(folders, notes)):
            return max(times), TIMESTAMP, notes
    if clock in (Clock.AUTO, Clock.GIT):
        if times := [time for folder in folders if (time := _committed(folder / ".git"))]:
            return max(times), COMMIT, notes
    if clock in (Clock.TIMESTAMP, Clock.GIT):
        missing = TIMESTAMP if clock is Clock.TIMESTAMP else "commit"
        notes.append(f"there is no {missing}: the time is that of the newest file")
    return newest, "", notes


def _near(place: Path) -> list[Path]:
    """The folder and those in it: nbgrader has one for each assignment."""
    inner = [p for p in sorted(place.iterdir()) if p.is_dir() and not p.is_symlink()]
    return [place, *inner[:50]]


def _stamped(folders: Iterable[Path], notes: list[str]) -> Iterator[float]:
    for folder in folders:
        try:
            text = files.read_bytes(folder / TIMESTAMP, 200).decode("utf-8", "replace")
            yield when(text, TIMESTAMP).timestamp()
        except FileNotFoundError:
            continue
        except (OSError, WorkbookError) as error:
            notes.append(str(error))


def _committed(repository: Path) -> float | None:
    """When the commit of HEAD was made; None where there is none.

    The repository is a stranger's: its settings could name programs to run. So git sees its objects
    alone, from an empty repository of ours.
    """
    try:
        head = _small(repository / "HEAD")
        if head.startswith("ref: "):
            head = _reference(repository, head[5:])
    except (OSError, ValueError):
        return None
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head):
        return None
    with workdir() as work:
        folder = str(work)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((repository / "objects").resolve()),
        }
        git = ["git", f"--git-dir={folder}/empty"]
        kind = "sha256" if len(head) == 64 else "sha1"
        for words in (["init", "-q", f"--object-format={kind}"], ["cat-file", "commit", head]):
            try:
                done = subprocess.run(
                    [*git, *words], env=environment, capture_output=True, timeout=20, cwd=folder
                )
            except (OSError, subprocess.TimeoutExpired):
                return None
            if done.returncode:
                return None
    line = re.search(rb"^committer [^\n]*> (\d{1,12}) [+-]\d{4}$", done.stdout, re.MULTILINE)
    return float(line[1]) if line else None


def _reference(repository: Path, name: str) -> str:
    """What a branch points to."""
    if not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
        raise ValueError(name)
    try:
        return _small(repository / name)
    except OSError:
        packed = files.read_bytes(repository / "packed-refs", 1 << 20).decode("utf-8", "replace")
    known = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.MULTILINE)
    return known[1] if known else ""


def _small(path: Path) -> str:
    return files.read_bytes(path, 1000).decode("utf-8", "replace").strip()
