"""What tests ask of a page in a browser."""

WIDTHS = 390, 900, 1440  # pixels: a phone, a tablet, a screen


_CUT = """elements => elements.flatMap(within => [within, ...within.querySelectorAll("*")])
    .filter(one => one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1)
    .filter(one => getComputedStyle(one).overflowX != "visible")
    .filter(one => !one.closest("pre, .cm-editor, select"))
    .map(one => `${one.clientWidth} of ${one.scrollWidth}: ${one.outerHTML.slice(0, 200)}`)"""


def cut(page, within: str) -> list[str]:
    """What is wider than it is shown in parts of a page, but for code, which may scroll."""
    return page.locator(within).evaluate_all(_CUT)


def serious(page, within: str) -> list[str]:
    """What axe finds in a part of a page that keeps somebody from using it."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page, context=within).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]}"
        for rule in violations
        for node in rule["nodes"]
        if rule["impact"] in ("serious", "critical")
    ]


def status(choice) -> str:
    return choice.locator("[role=status]").inner_text()


def choose_the_next_line(page) -> tuple[str, str]:
    """What the first choice of a page says, before and after a key."""
    lines = page.locator("label", has_text="Line")
    choice = page.locator(".workbook-choice", has=lines).first
    choice.scroll_into_view_if_needed()
    said = choice.locator("[role=status]")
    before = said.inner_text()
    choice.locator("select").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "([element, text]) => element.innerText != text", arg=[said.element_handle(), before]
    )
    assert choice.locator("svg[role=img]").get_attribute("aria-label") == said.inner_text()
    return before, said.inner_text()
