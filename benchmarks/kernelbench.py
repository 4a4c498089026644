"""KernelBench's references as files to be judged: of each an honest ModelNew, and a wrong twin.

    python benchmarks/kernelbench.py REFERENCES FOLDER
    workbook judge --suite FOLDER --reference REFERENCES --seed 5 --out rows.json
    python benchmarks/kernelbench.py REFERENCES FOLDER --rows rows.json

REFERENCES is a folder of KernelBench's files, such as its level1; none is kept here. In the honest
file the reference's own forward calls the small kernels of tests/models/tasks for all that the
judge holds to be the task's own work. Products are PyTorch's where the judge allows them. The twin
has a mistake in the last element or the last quarter of what it gives, or leaves out its end.
"""

import ast
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from utils.ground.errors import WorkbookError
from utils.ground.paths import ROOT
from utils.judge.models import tasks

FILES = ROOT / "tests/models/tasks"
MISTAKES = 3  # kinds, in kernels.cu
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


class ByName(ast.NodeTransformer):
    """A forward that calls what by_name.py has, and PyTorch for the rest: views and copies."""

    def __init__(self, known: set[str]):
        self.known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """torch.relu(x), F.relu(x), x.mean(1), self.conv(x)."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        of, name = ast.unparse(node.func.value), node.func.attr
        if of == "self":
            return _call("layer", node.func, *node.args)
        if name == "pow" and of == "torch":
            return _call("power", *node.args)
        if name not in self.known or of == "math":
            return node
        if of in ("torch", "F", "nn.functional", "torch.nn.functional"):
            return _call(name, *node.args, keywords=node.keywords)
        return _call(name, node.func.value, *node.args, keywords=node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Sums and products, of tensors or of numbers."""
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            return _call("matmul", node.left, node.right)
        if isinstance(node.op, ast.Pow):
            return _call("power", node.left, node.right)
        name = OPERATORS.get(type(node.op))
        return _call("arithmetic", ast.Constant(name), node.left, node.right) if name else node


def _call(name: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("ops"), name), list(arguments), list(keywords))


def file_of(text: str, by_pytorch: bool, mistake: int | None = None) -> str:
    """A ModelNew that does what the reference does, or does it wrong."""
    names = (FILES / "by_name.py").read_text()
    known = {n.name for n in ast.parse(names).body if isinstance(n, ast.FunctionDef)}
    known |= {"bmm"}
    names = names.replace("PRODUCTS_BY_PYTORCH = False", f"PRODUCTS_BY_PYTORCH = {by_pytorch}")
    names = "\n".join(line for line in names.splitlines() if not line.startswith("from head "))
    head = (FILES / "head.py").read_text()
    head = head.replace("@CUDA@", (FILES / "kernels.cu").read_text())
    tree = ast.parse(text)
    makers = ("get_inputs", "get_init_inputs")
    tree.body = [n for n in tree.body if getattr(n, "name", "") not in makers]
    (model,) = (n for n in tree.body if getattr(n, "name", "") == "Model")
    (forward,) = (n for n in model.body if getattr(n, "name", "") == "forward")
    forward = ast.parse(ast.unparse(forward)).body[0]
    forward.name = "by_kernels"
    ByName(known).visit(forward)
    body = ast.unparse(ast.fix_missing_locations(forward))
    new = "class ModelNew(ByKernels, Model):\n" + "\n".join(f"    {x}" for x in body.splitlines())
    if mistake is not None:
        new += "\n\n\nclass ModelNew(ModelNew):\n    def by_kernels(self, *inputs):\n"
        new += f"        y = super().by_kernels(*inputs)\n{_mistaken(mistake)}"
    return "\n\n\n".join([head, names, ast.unparse(tree), new]) + "\n"


def _mistaken(kind: int) -> str:
    return (
        f"        made = ext.mistaken(y if y.dtype == torch.int64 else y.float(), {kind})\n"
        "        return made.to(y.dtype)\n"
    )


def write(references: Path, folder: Path) -> None:
    """The files of a folder of references."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(sorted(references.glob("*.py"))):
        try:
            by_pytorch = bool(tasks.read(path).work.products)
        except WorkbookError as error:  # a file is written all the same
            print(error, file=sys.stderr)
            by_pytorch = False
        text = path.read_text()
        honest, wrong = file_of(text, by_pytorch), file_of(text, by_pytorch, number % MISTAKES)
        (folder / f"{path.stem}_honest.py").write_text(honest)
        (folder / f"{path.stem}_wrong.py").write_text(wrong)


def outcome(rows: list[dict[str, str]]) -> list[str]:
    """What became of them, and each that is not as it should be."""
    counts, others, seconds = Counter(), [], []
    for row in rows:
        stem = Path(row["file"]).stem
        kind = stem.rpartition("_")[2]
        counts[kind, row["evaluation"]] += 1
        seconds.append(float(row["seconds"]))
        if row["evaluation"] != {"honest": "passed", "wrong": "failed"}[kind]:
            others.append(f"- `{stem}`: {row['evaluation']}, {row['reason']}: {row['message']}")
    lines = ["| files | passed | failed | cannot be judged here |", "|---|---|---|---|"]
    for kind in ("honest", "wrong"):
        said = [str(counts[kind, e]) for e in ("passed", "failed", "not judged")]
        lines.append(f"| {kind} | {' | '.join(said)} |")
    seconds.sort()
    lines += [
        "",
        f"{seconds[len(seconds) // 2]:.1f} s a file (median), {seconds[-1]:.1f} s at most",
    ]
    return [*lines, "", *sorted(others)]


def main(
    references: Annotated[Path, typer.Argument(help="a folder of KernelBench's files")],
    folder: Annotated[Path, typer.Argument(help="where the files go, or are")],
    rows: Annotated[Path | None, typer.Option(help="of `workbook judge --suite`")] = None,
) -> None:
    """Write the files, or tell what became of them."""
    if rows:
        print("\n".join(outcome(json.loads(rows.read_text()))))
    else:
        write(references, folder)


if __name__ == "__main__":
    typer.run(main)
