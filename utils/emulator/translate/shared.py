"""`__shared__` declarations become a typedef and a macro that places the variable in the block."""

from collections.abc import Sequence

from utils.emulator.translate.code import Code, Misunderstood

_SPECIFIERS = ("__shared__", "extern", "static", "__device__")
_ATTRIBUTES = ("__align__", "alignas", "__attribute__", "__attribute")
_STOP = (";", "{", "}", ":", "(", ",", "")


def rewrite_shared(code: Code) -> None:
    """Rewrite every `__shared__` declaration in place.

    `__shared__ float As[16][16], total;` becomes
    `typedef float emu_t_As[16][16], emu_t_total; EMU_SHARED(As); EMU_SHARED(total);`.
    The macro is EMU_DYNAMIC_SHARED for `extern` arrays, and ends in _GLOBAL outside of functions.
    """
    for position in code.blocks:
        start, stop = _start(code, position), _stop(code, position)
        if stop is not None and stop > position + 1:
            _rewrite_declaration(code, start, stop, at_namespace=not code.blocks[position])


def _start(code: Code, position: int) -> int:
    """Where the declaration around a position begins."""
    while (text := code.text(position - 1)) not in _STOP and not code.directive_between(position):
        if text == ")":
            opener = code.mate.get(position - 1)
            if opener is None or code.text(opener - 1) not in _ATTRIBUTES:
                return position
            position = opener - 1
        elif text == "]":
            position = code.mate.get(position - 1, position - 1)
        elif text == ">":
            position = code.angle_open(position - 1) or position - 1
        else:
            position -= 1
    return position


def _stop(code: Code, position: int) -> int | None:
    """Position of the `;` that ends a declaration; in a macro it may be missing.

    None for what is no declaration, such as a function's parameter.
    """
    while position < len(code):
        text = code.text(position)
        if text == ";":
            return position
        if text in (")", "}"):
            return None
        position = code.after(position)
    return len(code) if code.macro else None


def _rewrite_declaration(code: Code, start: int, stop: int, at_namespace: bool) -> None:
    is_dynamic = False
    alignments: list[str] = []
    attributes: list[str] = []
    rest: list[int] = []
    position = start
    while position < stop:
        text, end = code.text(position), position + 1
        if text in _ATTRIBUTES:
            end = code.after(position + 1)
            if end == position + 4 and code.token(position + 2).kind == "number":
                attributes.append(f" __attribute__((aligned({code.text(position + 2)})))")
            elif text in ("__align__", "alignas"):
                alignments.append(f"alignas({code.flat(range(position + 2, end - 1))})")
            else:
                attributes.append(" " + code.flat(range(position, end)))
        elif text == "[" and code.text(position + 1) == "[":  # [[maybe_unused]]
            end = code.after(position)
        elif text not in _SPECIFIERS:
            end = code.after(position)
            rest.extend(range(position, end))
            position = end
            continue
        is_dynamic = is_dynamic or text == "extern"
        for blank in range(position, end):
            code.put(blank, "")
        position = end

    declarators = _declarators(code, rest)
    first = code.text(declarators[0][0])
    if alignments:
        # A structure takes both alignas(N) and alignas(float4); the attribute takes numbers only.
        # (In a template g++ passes over this attribute; all shared memory is aligned to 16 bytes.)
        helper = _paste(code, "emu_align_", first)
        prefix = f"struct {' '.join(alignments)} {helper} {{}}; typedef "
        attributes.append(f" __attribute__((aligned(alignof({helper}))))")
    else:
        prefix = "typedef "
    macro = "EMU_DYNAMIC_SHARED" if is_dynamic else "EMU_SHARED"
    macro += "_GLOBAL" if at_namespace and not code.macro else ""
    uses = []
    for name, last in declarators:
        code.put(name, _paste(code, "emu_t_", code.text(name)))
        code.append(last, "".join(attributes))
        uses.append(f"{macro}({code.text(name)})")
    code.out[code.index[start]] = prefix + code.out[code.index[start]]
    if not (is_dynamic or at_namespace):
        _capture_by_reference(code, stop, [code.text(name) for name, _ in declarators])
    if stop < len(code):
        code.put(stop, "; " + "; ".join(uses) + ";")
    else:
        code.append(stop - 1, "; " + "; ".join(uses))


def _capture_by_reference(code: Code, start: int, names: list[str]) -> None:
    """A lambda's `[=]` would copy shared variables, which as statics it must not capture."""
    for position in range(start, len(code)):
        text = code.text(position)
        if text == "}" and code.mate.get(position, -1) < start:
            return  # the end of the declaration's block
        if text == "[" and code.text(position + 1) == "=" and position in code.mate:
            listed = [code.text(p) for p in range(position, code.mate[position])]
            missing = [name for name in names if name not in listed]
            code.append(position + 1, "".join(f", &{name}" for name in missing))


def _paste(code: Code, prefix: str, name: str) -> str:
    return prefix + ("##" if name in code.params else "") + name


def _declarators(code: Code, rest: list[int]) -> list[tuple[int, int]]:
    """The position of each declared name, and the last position of its declarator.

    `rest` holds the positions of a declaration without qualifiers and attributes.
    """
    declarators = []
    for declarator in code.split(rest):
        name = _declared_name(code, declarator)
        if name is None:
            raise Misunderstood(rest[0] if rest else 0, "this __shared__ declaration has no name")
        declarators.append((name, declarator[-1]))
    return declarators


def _declared_name(code: Code, declarator: Sequence[int]) -> int | None:
    """The last name outside of brackets, or, as in `float (*row)[16]`, in the first of them."""
    name, settled, angles, behind = None, False, 0, 0
    for position in declarator:
        if position < behind:
            continue
        text, behind = code.text(position), code.after(position)
        if text in ("<", ">"):
            angles += 1 if text == "<" else -1
        elif angles:
            continue
        elif text == "=":
            raise Misunderstood(position, "a __shared__ variable cannot have an initial value")
        elif text == "(" and code.text(position + 1) in ("*", "&"):
            if code.text(position - 1) != "decltype":
                inside = _declared_name(code, range(position + 1, behind - 1))
                name, settled = inside or name, True
        elif text == "[":
            settled = True
        elif code.is_name(position) and not settled:
            name = position
    return name
