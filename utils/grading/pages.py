"""A page of HTML that needs no other file. It asks for nothing and runs nothing, whatever it came
to hold: it quotes what strangers wrote."""

from html import escape

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --box: #f3f4f6; --line: #c4c8ce; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --paper: #17191c; --box: #24272c; --line: #4a4f57; }
}
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 52rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; } h3 { font-size: 1rem; }
h2 { border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.4rem; text-align: left;
  vertical-align: top; }
td:first-child { overflow-wrap: anywhere; }
pre { background: var(--box); padding: 0.7rem; font-size: 0.85rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; background: #fff; }
"""


def page(title: str, body: str, style: str = "") -> str:
    """The document of a body that is HTML already, and of a title that is not yet; `style` is what
    this page has beside that of all."""
    return _PAGE.format(title=escape(title), policy=_POLICY, style=_STYLE + style, body=body)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""
