"""Words that several messages share."""


def many(count: int, thing: str) -> str:
    """ "1 turn", "1,024 turns"."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def left_out(instructions: int) -> str:
    """How a caption ends where a picture does not show all."""
    are = "is" if instructions == 1 else "are"
    return f"{many(instructions, 'more instruction')} {are} not shown; draw one with line=..."


def phases_left_out(count: int) -> str:
    return f"{count:,} of the phases {'is' if count == 1 else 'are'} left out."
