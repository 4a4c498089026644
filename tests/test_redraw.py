"""`make pictures`: pictures of executed notebooks anew, and nothing else of them."""

from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils.notebooks import documents, redraw

OLD = '<svg xmlns="http://www.w3.org/2000/svg"><title>old</title></svg>'
DRAW = f"""from IPython.display import SVG, display

def draw(word):
    display(SVG({OLD!r}.replace("old", word)))
"""


def picture():
    return new_output("display_data", data={"image/svg+xml": OLD})


def svg(cell) -> str:
    return "".join(cell.outputs[-1].data["image/svg+xml"])


def test_pictures_are_drawn_anew_and_what_was_measured_stays(tmp_path):
    measured = new_output("stream", name="stdout", text="0.254 ms on an H200\n")
    cells = [
        new_code_cell(DRAW),
        new_code_cell('draw("new")', outputs=[measured, picture()], execution_count=7),
        new_code_cell("bench(kernel)", outputs=[measured, picture()]),
        new_code_cell("draw(of_nothing)", outputs=[picture()]),
    ]
    path = tmp_path / "05_drawn.ipynb"
    path.write_text(documents.to_text(new_notebook(cells=cells)))
    assert redraw.redraw(path) == 1
    _, drawn, timed, failed = documents.read(path).cells
    assert "<title>new</title>" in svg(drawn)
    assert drawn.execution_count == 7
    for cell in (drawn, timed):
        assert "".join(cell.outputs[0].text) == measured.text
    for cell in (timed, failed):
        assert "<title>old</title>" in svg(cell)
    before = path.read_text()
    redraw.redraw(path)
    assert path.read_text() == before
