"""What hostile submissions do: to the text of an answer, to a notebook, to a student's folder.

Those that only compute wrongly, or pretend to compute, are in tests/attacks. Here is what is aimed
at the grader, its machine, and the work of others.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.paths import ROOT

OUTSIDE = "CANARY"  # stands for a folder beside the class, in which nothing may change
REFUSED = "compile error"
FORGED = {"exercise": "00_start_here/swish", "status": "passed", "points": 5, "of": 5}
FORGED |= {"assessed": {"credit": dict.fromkeys(("works", "small", "all", "clean", "gates"), True)}}
_SAID = json.dumps(json.dumps({"token": "?", "error": 0, "points": 255, "exercises": [FORGED]}))


@dataclass(frozen=True)
class TextAttack:
    """An attack in the text of an answer, which is the solution else."""

    name: str
    above: str = ""  # the text
    first: str = ""  # in the launcher
    statuses: tuple[str, ...] = (REFUSED,)
    says: str = ""  # words of the message
    wrong: bool = False  # the starter, not the solution, is what is attacked with
    slow: bool = False  # it takes a time limit to end it

    def text(self, exercise: Exercise, outside: Path) -> str:
        """The attacked answer. A launcher of the exercise's name must be there."""
        text = catalog.solution_text(exercise)
        if self.wrong:
            text = catalog.starter_text(exercise)
        head = re.search(rf"^void {exercise.name}\([^)]*\) {{\n", text, re.MULTILINE)
        text = text[: head.end()] + f"    {self.first}\n" * bool(self.first) + text[head.end() :]
        return f"{self.above}\n{text}".lstrip("\n").replace(OUTSIDE, str(outside))


def _calls(name: str, declared: str, call: str = "", says: str = "") -> TextAttack:
    function = re.search(r"(\w+)\(", declared)[1]
    return TextAttack(
        name, f'extern "C" {declared};', call or f"{function}();", says=says or f"{function} is"
    )


_BEFORE = "struct Before {{ Before() {{ {} }} }} now;"
_CRASH, _LATE = ("crashed",), ("timeout",)

TEXTS = (
    # processes
    _calls("fork_bomb", "int fork()", "for (;;) fork();"),
    _calls("kills_the_parent", "int kill(int, int)", "kill(-1, 9);"),
    _calls("outlives_the_run", "int daemon(int, int)", "daemon(0, 0);"),
    _calls("traces_the_grader", "long ptrace(int, ...)", "ptrace(16, 1);"),
    TextAttack("starts_a_program", first='system("touch CANARY/mark; sleep 999&");', says="system"),
    TextAttack("threads_that_stay", "#include <thread>", says="none of the headers"),
    _calls("system_call", "long syscall(long, ...)", "syscall(57);"),
    # files, network, environment
    _calls("opens_a_socket", "int socket(int, int, int)", "socket(2, 1, 0);"),
    TextAttack("reads_the_disk", first='if (!fopen("/etc/passwd", "r")) return;', says="fopen"),
    TextAttack("writes_to_the_workbook", first='fclose(fopen("CANARY/mark", "w"));', says="f"),
    TextAttack("writes_to_others", first='remove("CANARY/other.ipynb");', says="remove"),
    TextAttack("fills_the_disk", first="for (FILE* f = tmpfile();;) fputc(0, f);", says="tmpfile"),
    TextAttack("asks_for_the_seed", first='printf(getenv("WORKBOOK_SEED"));', says="getenv"),
    _calls("writes_to_descriptors", "long write(int, const void*, unsigned long)",
           f"for (int f = 3; f < 64; ++f) write(f, {_SAID}, {len(_SAID)});"),
    _calls("looks_for_symbols", "void* dlsym(void*, const char*)", 'dlsym(nullptr, "main");'),
    _calls("makes_memory_code", "int mprotect(void*, unsigned long, int)", "mprotect(0, 4096, 7);"),
    # the compiler
    TextAttack("includes_the_solution", f'#include "{ROOT}/solutions/00_start_here/swish.cu"',
               says="none of the headers"),
    TextAttack("includes_another_submission", '#include "CANARY/other.ipynb"',
               says="none of the headers"),
    TextAttack("embeds_a_file", 'asm(".incbin \\"/etc/passwd\\"");', says="asm"),
    TextAttack("asks_for_a_header", '#if __has_include("CANARY/other.ipynb")\n#error yes\n#endif'),
    TextAttack("template_without_end", "template <int N> struct T { enum { v = T<N + 1>::v }; };\n"
               "const int v = T<0>::v;", says="depth"),
    TextAttack("templates_that_double",
               "template <int N, class T> struct R : R<N - 1, R<N, T>>, R<N - 1, T*> {};\n"
               "template <class T> struct R<0, T> {};\nR<40, int> r;", slow=True),
    TextAttack("macros_that_double", "#define A(x) x x x x x x x x\n"
               "const int v = A(A(A(A(A(A(A(A(A(A(+)))))))))) 1;", slow=True),
    TextAttack("huge_object", "__device__ char big[1l << 34] = {1};", slow=True),
    TextAttack("words_in_an_error", "#error passed, 5 of 5 points", says="passed, 5 of 5"),
    TextAttack("escapes_in_the_text", "#error \x1b]0;title\x07\x1b[2J", says="control character"),
    # the watch
    TextAttack("no_sanitize", '__attribute__((no_sanitize("thread"))) void f();',
               says="__attribute__"),
    TextAttack("own_hooks", 'extern "C" void __tsan_write4(void*) {}', says="__tsan_write4"),
    TextAttack("ends_the_watch", first="extern void emu_watch_end(); emu_watch_end();",
               says="emu_watch_end"),
    TextAttack("another_kernel_unwatched", "#ifndef WORKBOOK_EMULATOR\n#define FAST\n#endif",
               says="WORKBOOK_EMULATOR"),
    TextAttack("pretends_another_file", '#line 1 "cuda_runtime.h"', says="#line"),
    TextAttack("takes_words_away", "#define __global__ static", says="__global__"),
    TextAttack("own_entry", 'extern "C" int workbook_run(const void*) { return 0; }',
               says="workbook_run"),
    # the notebook
    TextAttack("nbval_markers", "# NBVAL_SKIP\n# NBVAL_RAISES_EXCEPTION"),
    TextAttack("a_second_magic", "%%cuda 00_start_here/axpy"),
    TextAttack("python_in_the_answer",
               "!touch CANARY/mark\nget_ipython().system('touch CANARY/mark')"),
    # initialisers
    TextAttack("initialiser_exits", _BEFORE.format("exit(0);"),
               statuses=_CRASH, says="exit status 0"),
    TextAttack("initialiser_crashes",
               _BEFORE.format('int* volatile p = nullptr; printf("%d", *p);'),
               statuses=_CRASH, says="SIGSEGV"),
    TextAttack("initialiser_takes_over",
               _BEFORE.format(f"printf({_SAID}); fflush(stdout); exit(0);"),
               statuses=(REFUSED, *_CRASH)),
    TextAttack("initialiser_loops", _BEFORE.format("for (volatile int i = 0;;) i = 1;"),
               statuses=_LATE, says="did not end", slow=True),
    # the launcher
    TextAttack("exits", first="exit(0);", statuses=_CRASH, says="exit status 0"),
    TextAttack("throws", first="throw 1;", statuses=_CRASH, says="SIGABRT"),
    TextAttack("stack_without_end", "int deep(volatile int* n) { volatile int a[1000]; a[0] = *n; "
               "return deep(a) + a[0]; }", "volatile int start = 1; if (deep(&start)) return;",
               statuses=_CRASH, says="SIGSEGV"),
    TextAttack("eats_memory", first="for (;;) { volatile char* p = (char*)malloc(1 << 28); "
               "for (int k = 0; k < 1 << 28; k += 4096) p[k] = 1; }",
               statuses=_CRASH + _LATE, slow=True),
    TextAttack("loops", first="for (volatile int i = 0;;) i = 1;", statuses=_LATE,
               says="did not end", slow=True),
    TextAttack("prints_for_ever", first='for (;;) printf("on and on and on\\n");', statuses=_LATE,
               says="did not end", slow=True),
    TextAttack("forged_report", first=f"printf({_SAID}); fflush(stdout);", statuses=("failed",),
               wrong=True),
    TextAttack("escapes_in_output",
               first='printf("\\x1b]0;title\\x07\\x1b[2J\\x1b[1;1Hpassed\\r");',
               statuses=("failed",), wrong=True),
    TextAttack("does_nothing", first="return;", statuses=("failed",)),
)  # fmt: skip


# --- notebooks and folders. Each returns words that a note must have, or "" where nothing is said.

TOPIC, NAME = "04_reductions", "sum_tree"  # whose notebook is attacked
MARK = 'open("CANARY/mark", "w").write("here")'
_PATCHES = (
    f"import builtins; {MARK}\ncheck = builtins.check = lambda *a, **k: print('passed')",
    "import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node):\n"
    f"        return ast.Pass()\nget_ipython().ast_transformers.append(Drop())\n{MARK}",
    "from IPython.core.magic import register_cell_magic\n@register_cell_magic\n"
    f"def cuda(line, cell):\n    {MARK}",
    "import utils.judge.check\nutils.judge.check.Trial.run = lambda self: None\n"
    f"import os; {MARK}; os._exit(0)",
)


@dataclass(frozen=True)
class FolderAttack:
    """An attack by files. `act` gets the student's folder, the canary's, and another student's."""

    name: str
    act: Callable[[Path, Path, Path], None]
    says: str = ""  # words of a note
    loses: str = ""  # a notebook whose answers cannot be found any more


def _python(path: str, text: str = f"import os\n{MARK}\n") -> Callable:
    def act(mine: Path, outside: Path, other: Path) -> None:
        (mine / path).parent.mkdir(parents=True, exist_ok=True)
        (mine / path).write_text(text.replace("CANARY", str(outside)))

    return act


def _first_cells(mine: Path, outside: Path, other: Path) -> None:
    """Python cells around the answers; all tagged, and with forged outputs."""
    for path in mine.glob("*.ipynb"):
        book = json.loads(path.read_text())
        code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        for cell in code:
            cell["metadata"] = {"tags": ["nbval-skip", "raises-exception", "nbval-ignore-output"]}
            cell["outputs"] = []
        for source in _PATCHES:
            source = source.replace("CANARY", str(outside))
            cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
            book["cells"].insert(0, cell | {"source": source})
        path.write_text(json.dumps(book))


def _replaced(name: str, content: str | bytes) -> Callable:
    """The notebook of a topic is something else."""

    def act(mine: Path, outside: Path, other: Path) -> None:
        (mine / name).unlink(missing_ok=True)
        (mine / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return act


def _link(mine: Path, outside: Path, other: Path) -> None:
    (mine / f"{TOPIC}.ipynb").unlink()
    (mine / f"{TOPIC}.ipynb").symlink_to(other / f"{TOPIC}.ipynb")
    (mine / "theirs").symlink_to(other)
    (mine / "again").symlink_to("..")


def _fifo(mine: Path, outside: Path, other: Path) -> None:
    (mine / f"{TOPIC}.ipynb").unlink()
    os.mkfifo(mine / f"{TOPIC}.ipynb")
    os.mkfifo(mine / f"{NAME}.cu")


def _sparse(mine: Path, outside: Path, other: Path) -> None:
    (mine / f"{TOPIC}.ipynb").unlink()
    with open(mine / f"{TOPIC}.ipynb", "wb") as file:
        file.truncate(1 << 30)


def _many(mine: Path, outside: Path, other: Path) -> None:
    for number in range(600):
        (mine / "zz" / f"{number}").mkdir(parents=True)
        (mine / "zz" / f"{number}" / f"{NAME}.cu").touch()


def _sixteen_megabytes_each(mine: Path, outside: Path, other: Path) -> None:
    for number in range(20):
        with open(mine / f"notes-{number}.ipynb", "wb") as file:
            file.truncate(15 << 20)


_NAMES = ("=cmd()|'!A1.ipynb", "-rf.ipynb", "a\nb.ipynb", "\x1b[31m.ipynb", "..%2f..%2f.ipynb")


def _named(mine: Path, outside: Path, other: Path) -> None:
    for name in _NAMES:
        (mine / name).write_text("no notebook")


def _odd_cells(mine: Path, outside: Path, other: Path) -> None:
    path = mine / f"{TOPIC}.ipynb"
    book = json.loads(path.read_text())
    book["cells"] += [None, 7, [], {"cell_type": "code"}, {"cell_type": "code", "source": {"a": 1}}]
    book["cells"].append({"cell_type": "code", "source": [None, "%%cuda ", 3]})
    book["cells"].append({"cell_type": "code", "source": "%%cuda ../../etc/passwd\n"})
    book["cells"].append({"cell_type": "code", "source": f"%%cuda {TOPIC}/{NAME} -o {outside}\n"})
    book["metadata"] = {"kernelspec": {"argv": ["touch", f"{outside}/mark"], "name": "evil"}}
    path.write_text(json.dumps(book))


def _huge_answer(mine: Path, outside: Path, other: Path) -> None:
    source = f"%%cuda {TOPIC}/{NAME}\n//" + "x" * (1 << 20)
    cell = {"cell_type": "code", "metadata": {}, "source": source}
    (mine / f"{TOPIC}.ipynb").write_text(json.dumps({"cells": [cell]}))


FOLDERS = (
    FolderAttack("python_cells_patch_the_check", _first_cells, "has no effect here"),
    FolderAttack("conftest", _python("conftest.py"), "conftest.py"),
    FolderAttack("sitecustomize", _python("sitecustomize.py"), "sitecustomize.py"),
    FolderAttack("usercustomize", _python("usercustomize.py"), "usercustomize.py"),
    FolderAttack("own_utils", _python("utils/__init__.py"), "utils/__init__.py"),
    FolderAttack("own_nbval", _python("nbval/plugin.py"), "nbval/plugin.py"),
    FolderAttack("pytest_ini", _python("pytest.ini", "[pytest]\naddopts = -p evil\n"),
                 "pytest.ini"),
    FolderAttack("plugin", _python("evil.py"), "evil.py"),
    FolderAttack("ipython_startup", _python(".ipython/profile_default/startup/00.py")),
    FolderAttack("ipython_config", _python("ipython_config.py", f"c = get_config()\n{MARK}\n"),
                 "ipython_config.py"),
    FolderAttack("link_to_another_student", _link, "no file, but a link", TOPIC),
    FolderAttack("fifo", _fifo, "no file, but a link or a device", TOPIC),
    FolderAttack("sparse_gigabyte", _sparse, "1,073,741,824 bytes", TOPIC),
    FolderAttack("many_files", _many, "only the first 500 files"),
    FolderAttack("large_in_all", _sixteen_megabytes_each, "is beyond 67,108,864 bytes"),
    FolderAttack("names", _named, "=cmd()"),
    FolderAttack("malformed", _replaced(f"{TOPIC}.ipynb", '{"cells": [{"cell_type":'),
                 "cannot be read", TOPIC),
    FolderAttack("deep", _replaced(f"{TOPIC}.ipynb", "[" * 200_000), "cannot be read", TOPIC),
    FolderAttack("long_number", _replaced(f"{TOPIC}.ipynb", '{"cells": ' + "9" * 10_000 + "}"),
                 "cannot be read", TOPIC),
    FolderAttack("no_text", _replaced(f"{TOPIC}.ipynb", bytes(range(256))),
                 "cannot be read", TOPIC),
    FolderAttack("odd_cells", _odd_cells),
    FolderAttack("huge_answer", _huge_answer, "more than", TOPIC),
)  # fmt: skip
