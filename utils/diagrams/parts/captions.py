"""How a caption ends where a picture does not show all."""

from utils.ground.wording import many


def instructions_left_out(count: int) -> str:
    """How many instructions have no row, and how to see them."""
    are = "is" if count == 1 else "are"
    return f"{many(count, 'more instruction')} {are} not shown; draw one with line=..."


def phases_left_out(count: int) -> str:
    """How many of a block's phases have no panel."""
    return f"{count:,} of the phases {'is' if count == 1 else 'are'} left out."
