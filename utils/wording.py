"""Words that several messages share."""


def many(count: int, thing: str) -> str:
    """ "1 turn", "1,024 turns"."""
    return f"{count:,} {thing}{'s' * (count != 1)}"
