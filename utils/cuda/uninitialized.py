"""Local variables that a text uses before they have a value, as the compiler finds them."""

import re
import subprocess
import tempfile
from pathlib import Path

from utils.cuda import compiler, toolchain
from utils.cuda.kernel import Kernel

_PLACE = r"^(?:\./)?(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? "
_USED = re.compile(_PLACE + r"warning: ['‘](?P<name>[^'’]+)['’] (?:is|may be) used uninitialized")
_DECLARED = re.compile(_PLACE + r"note: ['‘](?P<name>[^'’]+)['’] (?:was )?declared here")


def variables(kernel: Kernel) -> list[str]:
    """A sentence for each: its name, where it is used and where it was declared.

    The text is compiled once more, with warnings, for that alone; [] where there is no compiler.
    """
    first, file = kernel.first_line, kernel.filename
    plan = compiler.plan(
        kernel.source, kernel.name, backend="emulator", first_line=first, filename=file
    )
    unit = plan.unit("")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for file, text in {**unit.headers, "main.cpp": unit.text}.items():
            (work / file).parent.mkdir(exist_ok=True)
            (work / file).write_text(text, errors="surrogateescape")
        flags = [flag for flag in unit.cflags if flag != "-w" and "auto-var-init" not in flag]
        warnings = ["-Wuninitialized", "-Wmaybe-uninitialized", "-fdiagnostics-color=never"]
        includes = [f"-I{path}" for path in (*unit.parsed_headers, ".")]
        command = [toolchain.cxx(), *flags, *warnings, *includes, "-S", "-o", "/dev/null"]
        done = subprocess.run([*command, "main.cpp"], cwd=work, capture_output=True, text=True)
    by_name: dict[str, list[str]] = {}  # by name: the line of its use, then of its declaration
    for text in done.stderr.splitlines():
        match = _USED.match(text) or _DECLARED.match(text)
        if match and match["file"] == kernel.filename:
            lines = by_name.setdefault(match["name"], [])
            lines += [match["line"]] if len(lines) < 2 else []
    return [_sentence(name, *lines) for name, lines in by_name.items()]


def _sentence(name: str, used: str, declared: str = "") -> str:
    where = f", declared in line {declared}," if declared else ""
    return (
        f"'{name}'{where} is read in line {used}, and may have no value by then: give it its first "
        "value where it is declared"
    )
