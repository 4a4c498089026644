"""Mutants that a machine makes: what the operators do to a text, and that `check` rejects them."""

import json
import random
import secrets
import subprocess
from dataclasses import asdict

import pytest
from mutation import survivors, trial
from mutation.code import Code
from mutation.operators import OPERATORS, mutations

from utils.course import catalog
from utils.ground.paths import ROOT

KERNEL = """\
__global__ void add_kernel(const float* x, float* out, int n) {{
    {}
}}

void add(const float* x, float* out, int n) {{
    add_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}}
"""


# An operator, a line, and what it makes of that line, without what stays.
CASES = """
assignment | s += x[i]; | [-+=-]{+=+}
arithmetic | y = a - 1; | [---]{+++}
arithmetic | int b = (n + B - 1) / B;
rounding | int b = (n + B - 1) / B; | [-+ B - 1-]
operand | y = a + b * c; | [-+ b * c-] | [-* c-]
operand | y = rsqrtf(v / n + eps); | [-/ n-] | [-+ eps-]
eps | y = rsqrtf(v / n + eps); | [-+ eps)-]{+) + eps+}
sign | y = expf(-x[i]) - 1; | [---]
comparison | if (i < n) y = 0; | [-<-]{+<=+}
comparison | f<<<a, b>>>(x); T<int> v; y = p->q << 1;
bound | if (i < n) y = 0; | [-<-]{++ 1 <+}
logic | y = a && b; | [-&&-]{+||+}
condition | bool q = n % 4 == 0 && aligned(x); | [-&& aligned(x)-] | [-n % 4 == 0 &&-]
guard | if (i < n) y = 0; | [-i < n-]{+true+} | [-i < n-]{+false+}
choice | y = c ? a : b + 1; | [-b + 1-]{+a+} | [-a-]{+(b + 1)+}
constant | y = 3 * 0.5f + 0.0f; | [-3-]{+4+} | [-0.5f-]{+0.5005f+} | [-0.0f-]{+0.001f+}
infinity | y = INFINITY; | [-INFINITY-]{+3.402823466e38f+} | [-INFINITY-]{+0.0f+} \
    | [-INFINITY-]{+NAN+}
component | i = threadIdx.x + q.w; | [-x-]{+y+} | [-w-]{+z+}
variable | int col = 1; z = n * quads + col; | [-quads-]{+n+}
width | size_t i = size_t(n) * m; | [-size_t-]{+int+} | [-size_t-]{+int+}
width | int i = blockIdx.x; int t = 3; | [-int-]{+short+}
uninitialised | float s = 0.0f, t = x[0]; | [-= 0.0f-]
shared_size | __shared__ float s[N][32]; | [-N-]{+N - 1+} | [-32-]{+32 - 1+}
statement | int t = 1; s = t; | [-s = t;-]{+;+}
statement | if (t) return;
loop | for (; i < n; i++) y++; | [-for (; i < n; i++)-]{+if (; i < n)+} | [-i++-]{+i += 2+}
loop | for (int i = t; i; i /= 2) y++; | [-for (int i = t; i; i /= 2)-]{+if (int i = t; i)+} \
    | {+2 *+} | [-t-]{+0+}
barrier | a = 1; __syncthreads(); | [-a = 1; __syncthreads();-]{+__syncthreads(); a = 1;+} \
    | [-__syncthreads();-]{+__syncwarp();+} | [-__syncthreads();-]{+__threadfence_block();+}
mask | __syncwarp(0xffffffff); | [-0xffffffff-]{+0x7fffffffu+} | [-0xffffffff-]{+0xfffffffeu+} \
    | [-0xffffffff-]{+0x0000ffffu+} | [-0xffffffff-]{+__activemask()+}
function | y = fmaxf(a, b); | [-fmaxf-]{+fminf+}
nan | y = fmaxf(a, b); | [-fmaxf(a, b)-]{+((a) > (b) ? (a) : (b))+}
atomic | atomicAdd(&s[i], v); | [-atomicAdd(&s[i], v)-]{+*(&s[i]) += v+}
call | y = warp_sum<32>(v) / n; | [-warp_sum<32>-]
argument | y = f(a, b[1]); | [-a, b[1]-]{+b[1], a+}
argument | float* p = x; y = f(p, 1);
launch | f<<<grid, 256>>>(x); | {+- 1+} | {+- 1+}
"""
CASES = [[part.strip() for part in line.split(" | ")] for line in CASES.strip().splitlines()]


@pytest.mark.parametrize(("operator", "body", "expected"), [(o, b, e) for o, b, *e in CASES])
def test_what_an_operator_makes_of_a_line(operator, body, expected):
    made = [m for m in mutations(KERNEL.format(body), "add") if m.operator == operator]
    lines = [mutation.difference for mutation in made if mutation.line == 2]
    changes = [next((e for e in expected if e in line), line) for line in lines]
    assert sorted(changes) == sorted(expected)


def test_every_operator_has_a_case():
    assert {operator for operator, *_ in CASES} == set(OPERATORS)


def test_the_declaration_of_a_launcher_and_comments_stay():
    text = KERNEL.format("y = 1;  // i < n, 3")
    for mutation in mutations(text, "add"):
        assert "void add(const float* x, float* out, int n) {" in mutation.text
        assert "// i < n, 3" in mutation.text


def test_mutants_that_differ_in_spaces_only_are_one():
    made = mutations(KERNEL.format("y = a + b;"), "add")
    texts = ["".join(mutation.text.split()) for mutation in made]
    assert len(set(texts)) == len(texts)


def test_lines_that_read_alike_have_numbers():
    body = "a = 1;\n    __syncthreads();\n    b = 1;\n    __syncthreads();"
    made = [mutation.difference for mutation in mutations(KERNEL.format(body), "add")]
    assert "[-__syncthreads();-]{+;+}" in made and "[-__syncthreads();-]{+;+} (2)" in made


def test_statements_of_nested_blocks_are_found():
    code = Code(
        KERNEL.format("for (int i = 0; i < n; i++) { if (i) { a(); } else b(); c(); } d();")
    )
    bodies = [[code.between(*statement) for statement in body] for body in code.bodies]
    assert ["if (i) { a(); } else b();", "c();"] in bodies and ["a();"] in bodies


# --- the survivors


def test_a_survivor_has_a_kind_and_a_reason():
    text = "== gap\n# no size is\n# so large\na: width: b\n# another\nc: width: d\n"
    got = survivors.read(text)
    assert got["a: width: b"] == survivors.Survivor("gap", "no size is so large", 4)
    assert got["c: width: d"].reason == "another"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: width: b", "line 1: no kind"),
        ("== gap\na: width: b", "line 2: no kind"),
        ("== fine", "line 1: 'fine' is none of"),
        ("== gap\n# why\na\na", "line 4: it stands in line 3"),
    ],
)
def test_what_is_wrong_in_the_survivors_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        survivors.read(text)


@pytest.fixture(scope="module")
def everything():
    """All mutants, those beyond the share, too."""
    return trial.all_mutants(100)


def test_there_are_thousands_of_mutants_and_some_of_every_exercise(everything):
    tried = [mutant.exercise for mutant in everything if mutant.rank < trial.SHARE]
    assert len(everything) >= 6000 and len(tried) >= 2200
    assert set(tried) == {exercise.id for exercise in catalog.exercises()}


def test_every_mutant_has_a_name_and_a_text_of_its_own(everything):
    assert len({mutant.name for mutant in everything}) == len(everything)
    assert len({mutant.digest for mutant in everything}) == len(everything)


def test_survivors_are_mutants(everything):
    names = {mutant.name for mutant in everything}
    stale = [f"line {s.line}: {name}" for name, s in survivors.known().items() if name not in names]
    assert stale == [], "solutions have changed; remove these, and run `python -m tests.mutation`"


def seed_of_this_commit() -> int:
    """Other mutants for each state of the project, so that whoever runs it again meets the same."""
    command = ["git", "rev-parse", "HEAD^{tree}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return int(done.stdout[:8], 16) if done.returncode == 0 else secrets.randbits(32)


def test_a_mutant_dies_or_is_a_known_survivor(everything):
    seed, known = seed_of_this_commit(), survivors.known()
    tried = [m for m in everything if m.rank < trial.SHARE and m.name not in known]
    tried = [m for m in tried if not m.exercise.startswith(trial.UNTRIED)]
    for mutant in random.Random(seed).sample(tried, 24):
        fate = trial.try_out(mutant, 3)
        assert fate.reason != trial.ALIVE, f"seed {seed}: {mutant}"


# --- trying one


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("i < n", "i <= n", "out of bounds"),
        ("i < n", "i < m", trial.REFUSED),
        ("i < n", "n > i", trial.SAME),
        ("(n + threads - 1)", "(n + threads)", trial.ALIVE),  # one block more than needed
    ],
)
def test_what_becomes_of_a_mutant(old, new, reason):
    text = catalog.solution_text(catalog.load("00_start_here/swish"))
    assert old in text
    mutant = trial.Mutant("00_start_here/swish", "by hand", 1, "", text.replace(old, new))
    assert trial.try_out(mutant).reason == reason


def test_what_stands_in_the_journal_is_not_tried_again(tmp_path):
    mutant = trial.Mutant("00_start_here/swish", "by hand", 1, "", "no CUDA at all")
    fates = [trial.Fate(mutant.digest, reason, 1, 0.5) for reason in ("race", "gate")]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps(asdict(fate)) + "\n" for fate in fates))
    assert list(trial.try_all([mutant], journal)) == [(mutant, fates[1])]
