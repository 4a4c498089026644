"""A compiler's message is cut down to what concerns the learner's text."""

from pathlib import Path

import pytest

from utils.cuda.messages import MAX_LINES, complaint
from utils.judge.models.absent import absent

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
            "k.cu:3: error: no\n    3 |  k<<<1, 2>>>(n);",
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
    lines = shown("k.cu:3:1: error: no\n" + "k.cu:2:1: note: see\n" * 49).splitlines()
    assert len(lines) == MAX_LINES + 1 and lines[-1] == "... (20 more lines)"


def test_the_errors_that_follow_from_the_first_are_counted():
    lines = shown("\n".join(f"k.cu:{i}:1: error: no" for i in range(50))).splitlines()
    assert lines[2:] == ["... (48 more errors: fix the first one first)"]


@pytest.mark.parametrize(
    ("said", "place", "name"),
    [
        ("k.cu:9:36: error: ‘cudaStreamCaptureModeGlobal’ was not declared in this scope\n"
         "    9 |     cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);\n"
         "      |                               ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
         "k.cu:9:5: error: ‘cudaStreamBeginCapture’ was not declared in this scope", "k.cu:9",
         "cudaStreamCaptureModeGlobal"),
        ("k.cu:4:5: error: ‘m’ was not declared in this scope\n"
         "k.cu:5:8: error: ‘cudaGraphExec_t’ does not name a type; did you mean ‘cudaGraphics’?",
         "k.cu:5", "cudaGraphExec_t"),
        ("k.cu:5:8: error: 'cudaGraph_t' was not declared in this scope", "k.cu:5", "cudaGraph_t"),
    ],
)  # fmt: skip
def test_graphs_are_named_once_as_what_the_emulator_has_not(said, place, name):
    first, *quoted = shown(said).splitlines()
    lacks = f"{place}: error: the emulator has no CUDA graphs, and {name} is of these; "
    assert first == lacks + (
        "launch the kernels one by one, as often as the graph would: a graph saves time, and "
        "computes the same"
    )
    assert len(quoted) <= 1 and all(line.startswith("    9 | ") for line in quoted)
    if place == "k.cu:5":  # the judge of model files knows that this is not the file's fault
        assert "the emulator has no CUDA graphs" in absent(first)


KERNEL = """
__global__ void f_kernel(const float* A, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = 2.0f * A[i];
        out[i] = v;
    }
}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said", "hint"),
    [
        ("= v;", "= v", "6:19: error: expected ‘;’ before ‘}’ token", "the end of line 6"),
        ("= v;", "= v", '(7): error: expected a ";"', "the end of line 6"),
        ("Idx.x;", "Idx.x", "4:5: error: expected ‘,’ or ‘;’ before ‘if’", "the end of line 3"),
        ("(i < n)", "i < n", "4:8: error: expected ‘(’ before ‘i’", "of if stands in parentheses"),
        ("(i < n) {", "i < n:", "4:8: error: expected ‘(’ before ‘i’", "a colon and an indent"),
        ("A[i]", "A[i][i]", "5:29: error: invalid types ‘const float[int]’ for array subscript",
         "row * columns + col"),
        ("A[i]", "A[i][i]", "(5): error: expression must have pointer-to-object type",
         "row * columns + col"),
        ("A[i]", "A[j]", "5:26: error: ‘j’ was not declared in this scope", "int j = ..."),
        ("A[i]", "A[j]", '(5): error: identifier "j" is undefined', "int j = ..."),
        ("    }\n}", "    }\n    out[i] = v;\n}", "8:14: error: ‘v’ was not declared in this scope",
         "v of line 5 is known only within the braces"),
        ("A[i]", "g(A[i])", "5:22: error: ‘g’ was not declared in this scope", "no function g"),
        ("A[i]", "A[i] ** 2", "5:32: error: invalid type argument of unary ‘*’", "has no **"),
        ("2.0f * A[i];", "i // 2;", "6:9: error: expected ‘,’ or ‘;’ before ‘out’",
         "// begins a comment (line 5)"),
        ("i < n", "True", "4:9: error: ‘True’ was not declared in this scope", "written small"),
        ("A[i]", "A[k]", "5:26: error: ‘k’ was not declared in this scope; did you mean ‘i’?",
         "int k = ..."),
        ("A[i]", "v - v.x", "5:26: error: no match for ‘operator-’ (operand types are ‘float4’ and "
         "‘float’)", "no arithmetic of its own"),
        ("A[i]", "2.0f * v", "5:26: error: no match for ‘operator*’ (operand types are ‘float’ and "
         "‘float4’)", "no arithmetic of its own"),
        ("A[i]", "quad(A[i]).x", "5:26: error: no matching function for call to ‘quad(const "
         "float&)’", "quad(&x[i])"),
        ("A[i]", "a - b", "5:26: error: no match for ‘operator-’ (operand types are ‘Stats’ and "
         "‘Stats’)", ""),
        ("if (i < n) {", "for (int j = 0, j < n, j++) {", "4:23: error: expected ‘;’ before ‘<’ "
         "token", "separate the three parts of a for"),
        ("if (i < n) {", "for (int j = 0; j < n, j++) {", "4:31: error: expected ‘;’ before ‘)’ "
         "token", "separate the three parts of a for"),
        ("= v;", "= v);", "6:19: error: expected ‘;’ before ‘)’ token", "one ) too many"),
        ("A[i]", "i ? {A[i], i} : v", "5:30: error: expected primary-expression before ‘{’ token",
         "braces need their type"),
        ("A[i]", "i ? {A[i], i} : v", "(5): error: expected an expression",
         "braces need their type"),
        ("A[i]", "A[i]", "5:26: error: something that nobody has met", ""),
    ],
)  # fmt: skip
def test_common_errors_are_told_in_a_plain_sentence(right, wrong, said, hint):
    text = KERNEL.replace(right, wrong)
    assert right in KERNEL
    place = "k.cu" if said.startswith("(") else "k.cu:"
    message = complaint(NINJA.format(place + said), "k.cu", [], text)
    assert ("hint: " in message) == bool(hint) and hint in message


def test_the_hint_stands_behind_the_first_error():
    said = "k.cu:6:19: error: expected ‘;’ before ‘}’ token\n    6 | x\nk.cu:8:1: error: no"
    lines = complaint(NINJA.format(said), "k.cu", [], KERNEL.replace("= v;", "= v")).splitlines()
    assert [line[:8] for line in lines] == ["k.cu:6:1", "    6 | ", "hint: a ", "k.cu:8:1"]


def test_a_shared_array_of_no_constant_size_is_told_without_a_line_of_ours():
    output = (
        "emulator/launch.h:63:86: error: ‘float [32][K]’ is a variably modified type\n"
        "   63 |   sizeof(std::remove_all_extents_t<emu_t_##name>), \\\n      |          ^\n"
        "k.cu:7:37: note: in expansion of macro ‘EMU_SHARED’\n"
        "    7 |     __shared__ float As[BM][K];\n"
        "emulator/launch.h:64:68: error: template argument 2 is invalid\n"
        "k.cu:7:37: note: in expansion of macro ‘EMU_SHARED’\n"
    )
    text = "\n" * 6 + "    __shared__ float As[BM][K];\n"
    assert complaint(output, "k.cu", [], text).splitlines() == [
        "k.cu:7: error: the size of this __shared__ array is no constant",
        "    7 |     __shared__ float As[BM][K];",
        "hint: the size of a __shared__ array is a constant: constexpr int SIZE = 256",
    ]


def test_a_launch_with_one_number_is_told_without_a_name_of_ours():
    output = "k.cu:3:5: error: no matching function for call to ‘emu::Config::Config(int&)’\n"
    said = complaint(output, "k.cu", [], "\n\n    k<<<blocks>>>(x);\n")
    assert said.startswith("k.cu:3:5: error: a launch of another form\n") and "emu" not in said
    assert "hint: a launch says how many blocks and how many threads" in said
