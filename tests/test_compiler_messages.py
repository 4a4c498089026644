"""A compiler's message is cut down to what concerns the learner's text."""

from pathlib import Path

import pytest

from utils.cuda.messages import MAX_LINES, complaint

NINJA = """Error building extension 'k': [1/2] c++ -c other.cpp
other.cpp:1:1: warning: not of interest
[2/2] c++ -MMD main.cpp
FAILED: [code=1] main.o \n/usr/bin/c++ -MMD -I/build main.cpp
{}
ninja: build stopped: subcommand failed.
"""


def shown(text, filename="k.cu"):
    return complaint(NINJA.format(text), filename, [Path("/build"), Path("/emulator/include")])


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("k.cu:3:1: error: no", "k.cu:3:1: error: no"),
        ("./k.cu:3:1: error: no", "k.cu:3:1: error: no"),
        ("/build/k.cu:3:1: error: no", "k.cu:3:1: error: no"),
        (
            "k.cu(3): error: no\n    x = y\n        ^\n\n1 error",
            "k.cu(3): error: no\n    x = y\n        ^\n1 error",
        ),
        (
            "In file included from main.cpp:1:\n"
            "/emulator/include/a.h:7:1: note: seen\n    7 | seen\n"
            "k.cu:3:1: error: no\n    3 | text\n      | ^",
            "k.cu:3:1: error: no\n    3 | text\n      | ^",
        ),
        (
            "k.cu:3:70: error: no\n    3 |  k<<<1, 2>>>(n);\n      |      ^",
            "k.cu:3:70: error: no\n    3 |  k<<<1, 2>>>(n);",
        ),
        (
            "k.cu: In instantiation of ‘f(int)::<lambda(auto:1&& ...)>’:\n"
            "/usr/include/tuple:9:26:   required by ‘std’\nk.cu:4:15:   required from here\n"
            "k.cu:4:1: error: no",
            "k.cu:4:1: error: no",
        ),
        (
            "k.cu:4:15:   required from here\n/usr/include/tuple:9:1: error: static assertion",
            "k.cu:4:15:   required from here\n/usr/include/tuple:9:1: error: static assertion",
        ),
        (
            "/usr/bin/ld: main.o: in function `f(int)':\n./k.cu:2: undefined reference to `g()'\n"
            "collect2: error: ld returned 1 exit status",
            "k.cu:2: undefined reference to `g()'",
        ),
        ("g++: internal compiler error: Killed", "g++: internal compiler error: Killed"),
    ],
)
def test_what_is_left_is_about_the_text(said, left):
    assert shown(said) == left


def test_a_message_of_an_unknown_form_is_shown_whole():
    assert complaint("ninja: error: out of space", "k.cu", []) == "ninja: error: out of space"
    assert shown("/elsewhere/tool:1: failed") == "/elsewhere/tool:1: failed"


def test_a_long_message_is_cut_and_says_so():
    lines = shown("\n".join(f"k.cu:{i}:1: error: no" for i in range(50))).splitlines()
    assert len(lines) == MAX_LINES + 1 and lines[-1] == "... (20 more lines)"
