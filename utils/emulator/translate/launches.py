"""`kernel<<<grid, block>>>(arguments)` becomes a call that g++ understands."""

from utils.emulator.translate.code import Code, Misunderstood

_CONTROL = ("if", "while", "for", "switch")
_NOT_AN_OPERAND = ("return", "else", "do", "case", "throw", "co_return", "template", *_CONTROL)


def rewrite_launches(code: Code) -> None:
    """Rewrite every launch in place. Raises Misunderstood where `<<<` and `>>>` do not pair up."""
    bounds, behind = _bounds(code), 0
    for position in code.positions("<"):
        if position < behind:
            continue
        length = code.run(position)
        if length >= 3 and code.text(position - 1) != "operator":
            _rewrite_launch(code, position, bounds)
        behind = position + length


def declare_clusters(code: Code) -> None:
    """Behind a kernel with `__cluster_dims__(x, y, z)`, in its line, tell the runtime of it."""
    for position in code.positions("__cluster_dims__"):
        if position + 1 not in code.mate:
            continue
        dims, name = range(position + 2, code.mate[position + 1]), code.mate[position + 1] + 1
        head = {code.text(p) for p in range(code.statement(position), position)}
        if "template" in head and any(code.is_name(p) and code.text(p) in head for p in dims):
            raise Misunderstood(position, "the emulator wants a cluster's size as a number here")
        while code.text(name) and code.text(name) not in (";", "{", "}"):
            if code.text(name + 1) == "(" and code.text(name) != "__launch_bounds__":
                break
            name = code.after(name)
        end = code.mate.get(name + 1, len(code)) + 1
        if code.text(end) == "{":
            end = code.mate.get(end, len(code))
        if end < len(code):
            kernel = code.text(name)
            code.append(
                end,
                f" static ::emu::DeclaredCluster emu_cluster_{kernel}_{position}"
                f'("{kernel}", {{{code.flat(dims)}}});',
            )


def _bounds(code: Code) -> dict[str, str]:
    """The most threads of a block by kernel, from `__launch_bounds__`, as an expression.

    Only where the expression means the same wherever the kernel is launched: a number, or constants
    of a text without namespaces that are no parameters of a template.
    """
    bounds: dict[str, str] = {}
    everywhere = not code.positions("namespace")
    for position in code.positions("__launch_bounds__"):
        if position + 1 not in code.mate:
            continue
        first = code.split(range(position + 2, code.mate[position + 1]))[0]
        name = code.mate[position + 1] + 1
        while code.text(name) in ("void", "static", "inline", "__global__"):
            name += 1
        named = any(code.is_name(p) for p in first)
        is_template = "template" in map(code.text, range(code.statement(position), position))
        if code.text(name + 1) == "(" and not (named and (is_template or not everywhere)):
            bounds[code.text(name)] = code.flat(first)
    return bounds


def _rewrite_launch(code: Code, opening: int, bounds: dict[str, str]) -> None:
    start, label_end = _kernel(code, opening)
    bound = bounds.get(code.text(label_end - 1)) if label_end - 1 == start else None
    within = f".within({bound})" if bound else ""
    closing = _closing(code, opening, opening + 3)
    kernel = code.flat(range(start, opening))
    label = _label(code, start, label_end)
    call = f"[&](auto&&... emu_args) {{ {kernel}(emu_args...); }}"
    if code.text(opening - 1) in ("]", ")") and code.mate[opening - 1] != start:
        # An expression with an index or a call is evaluated once, not once in every thread.
        call = f"[&, emu_kernel = {kernel}](auto&&... emu_args) {{ emu_kernel(emu_args...); }}"
    for index in range(code.index[start], code.index[opening + 2] + 1):
        if "\n" not in code.out[index]:
            code.out[index] = ""
    for position in range(closing, closing + 3):
        code.put(position, "")
    arguments = closing + 3
    if code.macro:
        # What a macro is given as arguments may be nothing, or bring its own parentheses.
        code.put(start, "[&](auto&&... emu_values) { ::emu::launch(::emu::Config(")
        code.put(closing, f"), {label}, {call}, emu_values...); }}")
        return
    code.put(start, "::emu::launch(::emu::Config(")
    code.put(closing, f"){within}")
    end = code.mate.get(arguments)
    comma = "" if end == arguments + 1 else ", "
    code.put(arguments, f", {label}, {call}{comma}")
    for position in range(arguments + 1, end or arguments):
        around = code.text(position - 1), code.text(position + 1)
        if code.text(position) == "NULL" and around[0] in "(," and around[1] in ",)":
            code.put(position, "nullptr")  # g++ would deduce an integer


def _closing(code: Code, opening: int, position: int, angles: int = 0) -> int:
    """Where the `>>>` of a launch begins. `angles` counts `<` that may belong to templates."""
    while position < len(code):
        text, length = code.text(position), 1
        if text in ("(", "[", "{"):
            position = code.mate.get(position, position)
        elif text in (")", "]", "}", ";"):
            break
        elif text == "<":
            angles += 1
        elif text == ">":
            length = code.run(position)
            after = code.text(position + length)
            if length >= 3 and (after == "(" or (code.macro and after in ("", *code.params))):
                if length == 3 and angles >= 3:  # as in k<<<1, A<B<C<int>>>(2).size>>>()
                    try:
                        return _closing(code, opening, position + length, angles - length)
                    except Misunderstood:
                        pass
                return position + length - 3
            angles -= min(angles, length)
        position += length
    raise Misunderstood(opening, "this '<<<' has no '>>>(' to go with it")


def _kernel(code: Code, opening: int) -> tuple[int, int]:
    """Where the kernel expression left of `<<<` begins, and where its name without template
    arguments ends."""
    label_end = position = opening
    if code.text(opening - 1) == ">":
        label_end = code.angle_open(opening - 1) or opening
    while True:
        position = _operand(code, position, opening)
        connector = code.text(position - 1)
        if connector not in ("::", ".", "->", "##"):
            return position, label_end
        position -= 1
        before = code.text(position - 1)
        is_operand = code.is_name(position - 1) and before not in _NOT_AN_OPERAND
        if connector == "::" and not is_operand and before != ">":
            return position, label_end  # ::kernel, of the global namespace


def _operand(code: Code, position: int, opening: int) -> int:
    """Where the name or parenthesis begins that, with its suffixes, ends before a position."""
    while position > 0:
        text = code.text(position - 1)
        if text == ">":
            if (opened := code.angle_open(position - 1)) is None:
                break
            position = opened
        elif text in (")", "]") and position - 1 in code.mate:
            position = code.mate[position - 1]
            if text == ")" and not _is_call(code, position):
                return position
        elif code.is_name(position - 1) and text not in _NOT_AN_OPERAND:
            position -= 1
            return position - 1 if code.text(position - 1) == "template" else position
        else:
            break
    raise Misunderstood(opening, "there is no kernel in front of this '<<<'")


def _is_call(code: Code, position: int) -> bool:
    """Whether the `(` at a position calls what stands before it."""
    before = code.text(position - 1)
    if before == ")":
        opener = code.mate.get(position - 1, 0)
        return code.text(opener - 1) not in _CONTROL
    if code.is_name(position - 1):
        return before not in _NOT_AN_OPERAND
    return before in ("]", ">")


def _initialiser(code: Code, position: int) -> tuple[int, int] | None:
    """Of `auto kernel = name<...>;`, where `kernel` is launched: where the name stands."""
    variable = code.text(position)
    for p in range(position - 1, 1, -1):
        if code.text(p) == variable and code.text(p + 1) == "=":
            if code.text(p - 1) != "auto" and code.text(p - 2) != "auto":
                return None
            stop = p + 2
            while code.is_name(stop) or code.text(stop) == "::":
                stop += 1
            end = code.angle_close(stop) if code.text(stop) == "<" else stop
            return (p + 2, stop) if stop > p + 2 and code.text(end) == ";" else None
    return None


def _label(code: Code, start: int, stop: int) -> str:
    """The kernel's name as a C++ string; a macro's parameter is spelt out where it is used."""
    if stop == start + 1 and (named := _initialiser(code, start)):
        start, stop = named
    names = [code.text(p) for p in range(start, stop) if code.text(p) != "##"]
    if any(name in code.params for name in names):
        return " ".join(f"#{n}" if n in code.params else f'"{n}"' for n in names)
    return '"' + code.flat(range(start, stop)).replace("\\", "\\\\").replace('"', '\\"') + '"'
