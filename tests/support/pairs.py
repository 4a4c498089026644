"""A workbook of one topic for tests of the house: `copy` is worked, `twice` an exercise."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ID = "01_pairs/twice"
SPEC = """
from utils.course import At, Exercise
AT = At(
    check=({"n": 1}, {"n": 5}, {"n": 70}),
    bench={"n": 70},
    draw={"n": 5},
    gates={"n": 64},
    drawn=({"n": (300, 400)},),
)
COMMON = dict(shapes={"x": "n", "y": "n"}, outputs=("y",), at=AT, flops=lambda n: n)
EXERCISES = (
    Exercise(name="copy", title="y = x", reference=lambda x: x, **COMMON),
    Exercise(name="twice", title="y = 2 x", reference=lambda x: 2 * x, number="01.1", **COMMON),
)
"""
COPY = """__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
void copy(const float* x, float* y, int n) { copy_kernel<<<(n + 31) / 32, 32>>>(x, y, n); }
"""
HINTS = """## Hint 1

Add.

## Hint 2

Or multiply.
"""
SOLUTION = """// x, y: (n)
__global__ void twice_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // BEGIN SOLUTION
    if (i < n) y[i] = 2 * x[i];
    // END SOLUTION
}
void twice(const float* x, float* y, int n) { twice_kernel<<<(n + 31) / 32, 32>>>(x, y, n); }
"""
STARTER = """// x, y: (n)
__global__ void twice_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code here
}
void twice(const float* x, float* y, int n) { twice_kernel<<<(n + 31) / 32, 32>>>(x, y, n); }
"""


def fold(kind: str):
    """A markdown cell that sync fills."""
    return new_markdown_cell("", metadata={"workbook": {"fold": kind, "id": ID}})


def write(root: Path) -> None:
    """Lay the workbook out in a folder; its notebook is not yet in step."""
    files = {
        "README.md": "<!-- results -->\nNothing has been measured yet.\n<!-- /results -->\n",
        "kernels/01_pairs/spec.py": SPEC,
        "kernels/01_pairs/copy.cu": COPY,
        "kernels/01_pairs/twice.md": HINTS,
        "solutions/01_pairs/twice.cu": SOLUTION,
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    write_notebook(
        root,
        new_markdown_cell("# Pairs"),
        new_code_cell("%%cuda 01_pairs/copy"),
        new_code_cell(f"%%cuda {ID}"),
        fold("hints"),
        fold("solution"),
        new_code_cell("print(1)", outputs=[nbformat.v4.new_output("stream", text="1\n")]),
    )


def write_notebook(root: Path, *cells, name: str = "01_pairs") -> Path:
    """A notebook of the workbook; cells given as text are code."""
    path = root / f"notebooks/{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    cells = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def split(root: Path) -> tuple[Path, Path]:
    """Let the topic go on in a second notebook, where `twice` stands. The paths of both."""
    spec = SPEC.replace("number=", 'notebook="01_pairs_more", number=')
    (root / "kernels/01_pairs/spec.py").write_text(spec)
    later = write_notebook(root, f"%%cuda {ID}", fold("hints"), fold("solution"))
    later = later.rename(root / "notebooks/01_pairs_more.ipynb")
    return write_notebook(root, "%%cuda 01_pairs/copy"), later


MUTANTS = "\n".join(
    f"== {name}: {reason}\n-    if (i < n) y[i] = 2 * x[i];\n+    {line}\n"
    for name, reason, line in (
        ("no_guard", "out of bounds", "y[i] = 2 * x[i];"),
        ("one_more", "out of bounds", "if (i <= n) y[i] = 2 * x[i];"),
        ("one_less", "not written", "if (i < n - 1) y[i] = 2 * x[i];"),
        ("nothing", "not written", "if (i < 0) y[i] = 2 * x[i];"),
        ("thrice", "wrong values", "if (i < n) y[i] = 3 * x[i];"),
        ("first", "wrong values", "if (i < n) y[i] = 2 * x[0];"),
        ("adds", "uninitialized", "if (i < n) y[i] += 2 * x[i];"),
        ("one_place", "race", "if (i < n) y[0] = 2 * x[i];"),
    )
)


def files(root: Path) -> dict[str, bytes]:
    """What is in each file there; not those that Python keeps of modules it has compiled."""
    there = (path for path in root.rglob("*") if path.is_file())
    kept = (path.relative_to(root) for path in there if "__pycache__" not in path.parts)
    return {path.as_posix(): (root / path).read_bytes() for path in kept}


def complete(root: Path) -> None:
    """Give `twice` all that an exercise needs."""
    more = (
        'number="01.1", points=5, effort="1 line", gates=(ALL_LANES,), '
        'peers={"it": lambda x: 2 * x}, library="it"'
    )
    text = "from utils.course.common_gates import ALL_LANES\n" + SPEC
    (root / "kernels/01_pairs/spec.py").write_text(text.replace('number="01.1"', more))
    owner = "// x, y: (n)\n// One thread owns one element.\n"
    for path, text in (("solutions", SOLUTION), ("kernels", STARTER)):
        (root / path / "01_pairs/twice.cu").write_text(text.replace("// x, y: (n)\n", owner))
    (root / "tests/mutants/01_pairs").mkdir(parents=True)
    (root / "tests/mutants/01_pairs/twice.diff").write_text(MUTANTS)
    cells = "%%cuda 01_pairs/copy", f"%%cuda {ID}", fold("hints"), fold("solution")
    write_notebook(root, *cells, "check(twice)")
