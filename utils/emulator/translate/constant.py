"""`__constant__` memory is 64 KB: what does not fit is refused, as nvcc does."""

from utils.emulator.translate.code import Code

_BYTES = 65536
_SAYS = f"__constant__ memory holds {_BYTES} bytes in all"


def limit_constants(code: Code) -> None:
    """Put a static_assert behind every `__constant__` declaration, on the same line."""
    if code.macro:
        return
    for position in code.positions("__constant__"):
        stop = position
        while stop < len(code) and code.text(stop) not in (";", "}"):
            stop = code.after(stop)
        around = code.text(position - 1), code.text(position + 1)
        if code.text(stop) != ";" or "extern" in around:
            continue
        for name in _declared(code, position + 1, stop):
            code.append(stop, f' static_assert(sizeof({name}) <= {_BYTES}, "{_SAYS}");')


def _declared(code: Code, start: int, stop: int) -> list[str]:
    """The variables of a declaration whose size it says."""
    names = []
    for part in code.split(range(start, stop)):
        position, name, sized = part[0] if part else stop, "", True
        while position <= (part[-1] if part else -1):
            text = code.text(position)
            if text in ("=", "{", "("):
                break
            if code.is_name(position):
                name = text
            sized = sized and not (text == "[" and code.text(position + 1) == "]")
            position = code.after(position)
        if name and sized:
            names.append(name)
    return names
