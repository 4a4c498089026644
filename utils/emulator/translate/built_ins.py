"""Host functions with the name of a built-in one, such as `int min(int a, int b)`.

nvcc takes a definition with the very parameters of a built-in for that function's own: the host and
the device call it. g++ would see one function defined twice, so the program's gets a name of its
own here. With other parameters, or as a template, a kernel's call may still mean the built-in.
"""

from collections.abc import Sequence

from utils.emulator.translate.functions import Function

# Those that nvcc lets a program define (seen with 13.0); of `min`, the others are defined already.
_INTEGERS = {("min", ("int", "int")), ("max", ("int", "int")), ("abs", ("int",))}
_ONE_FLOAT = """acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf cospif erff erfcf
    erfinvf erfcinvf exp2f expf expm1f fabsf floorf lgammaf log10f log1pf log2f logbf logf
    normcdff normcdfinvf rcbrtf rintf roundf rsqrtf sinf sinhf sinpif sqrtf tanf tanhf tgammaf
    truncf __expf __logf __log2f __log10f __sinf __cosf __tanf __saturatef""".split()
_TWO_FLOATS = """atan2f copysignf fdimf fdividef fmaxf fminf fmodf hypotf powf remainderf rhypotf
    __powf __fdividef""".split()
_SIGNATURES = (
    _INTEGERS
    | {(name, ("float",)) for name in _ONE_FLOAT}
    | {(name, ("float", "float")) for name in _TWO_FLOATS}
)
_NAMES = {name for name, _ in _SIGNATURES}


def may_mean_built_in(functions: Sequence[Function]) -> bool:
    """Whether a kernel may call the name of these functions, none of which is for the device."""
    return functions[0].name in _NAMES and not any(map(_enclosed, functions))


def rename(functions: Sequence[Function]) -> None:
    """Give a program's own definitions of built-ins, and the calls, a name of their own."""
    own = {function.name for function in functions if _redefines(function)}
    for function in functions if own else ():
        code = function.code
        if _redefines(function):
            code.put(function.at, f"emu_own_{function.name}")
        for position in function.body:
            if code.words[position] in own and code.text(position + 1) == "(":
                before = code.text(position - 1)
                qualified = before == "::" and code.is_name(position - 2)
                if before not in (".", "->") and not qualified:
                    code.put(position, f"emu_own_{code.words[position]}")


def _redefines(function: Function) -> bool:
    if function.name not in _NAMES or function.member or function.on_device or function.is_kernel:
        return False
    return (function.name, _types(function)) in _SIGNATURES and not _enclosed(function)


def _types(function: Function) -> tuple[str, ...]:
    """Those of the parameters, without `const`."""
    code, types = function.code, []
    for parameter in code.split(function.parameters):
        words = [code.text(p) for p in parameter if code.text(p) != "const"]
        named = len(words) > 1 and words[-1].isidentifier()
        types.append(" ".join(words[:-1] if named else words))
    return tuple(types)


def _enclosed(function: Function) -> bool:
    """Whether a function stands in braces, as those of a namespace do."""
    code = function.code
    return any(
        code.text(opening) == "{" and opening < function.at < closing
        for opening, closing in code.mate.items()
    )
