"""The text of a reference, and the numbers in it that are sizes: the same task made smaller.

KernelBench's files name their sizes at the top (`batch_size = 128`), or write them in
`get_inputs()` and `get_init_inputs()`. Each such number may be put otherwise, and equal numbers
stay equal. What the model itself uses by name is none of them, nor is what is KEPT or below: kernel
sizes, strides, dimensions.

A reference that names a card, in `device="cuda"` or `.cuda()`, is read as if it named no device: it
runs where there is none.
"""

import ast
import copy
import symtable
import types
from collections.abc import Iterator, Mapping

KEPT = 8
MAKERS = "get_inputs", "get_init_inputs"


class ReferenceText:
    """A reference's text, which can be run with other sizes."""

    def __init__(self, text: str, name: str):
        """Raises SyntaxError."""
        tree = ast.parse(text)
        anywhere = _Anywhere(tree).visit(copy.deepcopy(tree))
        if ast.dump(anywhere) != ast.dump(tree):
            text = ast.unparse(ast.fix_missing_locations(anywhere))
        self.text, self.name = text, name
        self._tree: ast.Module = _Folded().visit(ast.parse(text))
        self._used = set(_used(symtable.symtable(text, name, "exec")))
        self.numbers = sorted({number_of(node) for node in _sizes(self._tree, self._used)})

    def module(self, changed: Mapping[int, int]) -> types.ModuleType:
        """The module, run with sizes that are changed. Raises whatever it raises."""
        module = types.ModuleType(self.name)
        exec(compile(self._changed(changed), f"{self.name}.py", "exec"), module.__dict__)
        return module

    def written(self, changed: Mapping[int, int]) -> str:
        """The text with sizes that are changed."""
        return ast.unparse(self._changed(changed))

    def _changed(self, changed: Mapping[int, int]) -> ast.Module:
        tree = copy.deepcopy(self._tree)
        for node in _sizes(tree, self._used):
            node.value = changed.get(number_of(node), number_of(node))
        return tree


class _Anywhere(ast.NodeTransformer):
    """Leaves out that a tensor is on a card: by a word, a torch.device, or a name for one."""

    def __init__(self, tree: ast.Module):
        self.names: set[str] = set()
        made = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and self._is_card(n.value)]
        self.names |= {ast.unparse(target) for node in made for target in node.targets}

    def _is_card(self, node: ast.expr) -> bool:
        if isinstance(node, ast.IfExp):  # "cuda" if torch.cuda.is_available() else "cpu"
            return self._is_card(node.body) or self._is_card(node.orelse)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("device"):
            return any(map(self._is_card, node.args))
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value.partition(":")[0] == "cuda"
        return ast.unparse(node) in self.names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """torch.rand(4, device="cuda"), x.cuda(), x.to("cuda")."""
        self.generic_visit(node)
        node.keywords = [
            k for k in node.keywords if k.arg != "device" or not self._is_card(k.value)
        ]
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("cuda", "to"):
            return node
        if node.func.attr == "to" and node.args and self._is_card(node.args[0]):
            del node.args[0]
        left = node.func.attr == "to" and (node.args or node.keywords)
        return node if left else node.func.value


class _Folded(ast.NodeTransformer):
    """Makes one number of `1024 * 4`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not (_whole(node.left) and _whole(node.right)):
            return node
        if isinstance(node.op, ast.Pow | ast.LShift) and number_of(node.right) > 64:
            return node
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Pow | ast.LShift):
            return node
        value = eval(compile(ast.Expression(node), "", "eval"))
        return ast.copy_location(ast.Constant(value), node) if type(value) is int else node


def _whole(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def number_of(node: ast.AST) -> int:
    """The whole number that is written there; 0 for anything else."""
    value = node.value if isinstance(node, ast.Constant) else 0
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _sizes(tree: ast.Module, used: set[str]) -> Iterator[ast.Constant]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            inside = (n for target in node.targets for n in ast.walk(target))
            names = [n.id for n in inside if isinstance(n, ast.Name)]
            parts: list[ast.AST] = [] if used & set(names) else [node.value]
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            parts = [] if node.target.id in used else [node.value]
        elif isinstance(node, ast.FunctionDef) and node.name in MAKERS:
            parts = list(node.body)
        else:
            continue
        for inner in (inner for part in parts for inner in ast.walk(part)):
            if isinstance(inner, ast.Constant) and number_of(inner) > KEPT:
                yield inner


def _used(scope: symtable.SymbolTable) -> Iterator[str]:
    """Names of the module that the model, or what it calls, looks up when it runs."""
    for inner in scope.get_children():
        if inner.get_name() not in MAKERS:
            names = inner.get_symbols()
            yield from (n.get_name() for n in names if n.is_global() and n.is_referenced())
            yield from _used(inner)
