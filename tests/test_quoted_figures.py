"""What the notebooks quote of an NVIDIA H200, or of an H100, is what is stored of it.

Found are a kernel's row of a table, "`name` took 2 ms", and "On an H200: 2 ms" or "2 ms on an H200"
in the text below `bench(name)`, with what PyTorch and `torch.compile` take, if that comes next.
Figures of variants are stored nowhere: not found. Of other sizes, those in 14's tables are, and the
README's.
At a notebook's head, "2 times as fast as PyTorch" and "70 % of cuBLAS" are of one of its kernels.
"""

import re
from collections.abc import Iterator

import pytest

from utils.course import catalog
from utils.ground.paths import ROOT
from utils.notebooks import documents
from utils.timing import results
from utils.timing.results import Entry

CARDS = {"H200": "NVIDIA H200", "H100": "NVIDIA H100 80GB HBM3"}
STORED = {short: results.read(results.path_of(card)) for short, card in CARDS.items()}
BY_NAME = {exercise.name: exercise.id for exercise in catalog.exercises()}
COLUMNS = {
    "ms": lambda entry: entry.ours().median_ms,
    "GB/s": lambda entry: entry.bytes / entry.ours().median_ms / 1e6,
    "TFLOP/s": lambda entry: entry.flops / entry.ours().median_ms / 1e9,
}
NUMBER = r"[\d,]*\d(?:\.\d+)?"
ROW = re.compile(r"`(\w+)`(?: \(\d\d\))?")  # the chapter that it is from
TOOK = re.compile(rf"`(\w+)` took ({NUMBER}) ms")
DATE = r"(?: \(measured (\d{4}-\d\d-\d\d)[^)]*\))?"
ON_A_CARD = re.compile(rf"On an (H[12]00){DATE}: ({NUMBER}) ms|({NUMBER}) ms on an (H[12]00){DATE}")
PEER = re.compile(
    rf"[;,] (?:where )?(PyTorch|`torch.compile`) (?:takes )?({NUMBER})|"
    rf"and (`torch.compile`) ({NUMBER})"
)
KINDS = {"PyTorch": "library", "`torch.compile`": "compile"}
BEATEN = re.compile(
    rf"({NUMBER})(?: to ({NUMBER}))? (times as fast as|% of)(?: eager)? (PyTorch|cuBLAS|`torch)"
)
BENCH = re.compile(r"bench\((\w+)\)")


def entry_of(name: str, card: str = "H200") -> Entry | None:
    """What is stored of a kernel at its own size."""
    return STORED[card].entries.get(BY_NAME.get(name))


def agrees(said: str, value: float) -> bool:
    """Whether a number is the value, rounded to as many places."""
    said = said.replace(",", "")
    return abs(float(said) - value) <= 0.5000001 * 10 ** -len(said.partition(".")[2])


def of_tables(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, number, unit) of the rows of tables that begin with a kernel's name alone."""
    head = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells
        elif name := ROW.fullmatch(cells[0]):
            for unit, said in zip(head, cells, strict=False):
                if unit in COLUMNS and re.fullmatch(NUMBER, said):
                    yield name[1], said, unit


def of_peers(text: str, entry: Entry) -> list[str]:
    """What a sentence says wrongly of PyTorch or its compiler, beside a kernel's own figure."""
    stored = {row.kind: row.median_ms for row in entry.rows}
    figures = [(one or other, said or more) for one, said, other, more in PEER.findall(text)]
    return [
        f"{peer}: {said} ms, stored {stored[KINDS[peer]]:.5g}"
        for peer, said in figures
        if not agrees(said, stored[KINDS[peer]])
    ]


def disagreements(text: str, benched: str | None) -> tuple[int, list[str]]:
    """How many figures a text quotes of kernels, and those that are others than the stored ones.

    `benched` is the kernel that the cell above the text has timed, if it has.
    """
    quoted = [*of_tables(text), *((*figure, "ms") for figure in TOOK.findall(text))]
    wrong = []
    known = [(*one, entry) for one in quoted if (entry := entry_of(one[0]))]
    if benched and (figure := ON_A_CARD.search(text)):
        date, entry = figure[2] or figure[6], entry_of(benched, figure[1] or figure[5])
        if entry:
            known.append((benched, figure[3] or figure[4], "ms", entry))
            wrong += of_peers(text[figure.end() :].partition(". ")[0], entry)
        if date and entry and date != entry.date:
            wrong.append(f"{benched}: measured {date}, stored {entry.date}")
    for name, said, unit, entry in known:
        if not agrees(said, value := COLUMNS[unit](entry)):
            wrong.append(f"{name}: {said} {unit}, stored {value:.5g}")
    return len(known), wrong


@pytest.mark.parametrize("notebook", catalog.notebooks())
def test_a_notebook_quotes_what_is_stored(notebook):
    wrong, benched = [], None
    for cell in documents.read(documents.notebook_of(notebook)).cells:
        if cell.cell_type == "code":
            call = BENCH.fullmatch(cell.source.strip())
            benched = call and call[1]
        else:
            wrong += disagreements(cell.source, benched)[1]
    assert wrong == []


def ratios(notebook: str, card: str, compiled: bool) -> Iterator[float]:
    """PyTorch's time over that of each kernel of a notebook, or its compiler's, at its own size."""
    for exercise in catalog.in_notebook(notebook):
        if entry := entry_of(exercise.name, card):
            for row in entry.rows:
                if row.kind != "ours" and (row.kind == "compile") == compiled:
                    yield row.median_ms / entry.own().median_ms


def head_of(notebook: str) -> str:
    """Where a notebook says what it beats."""
    return documents.read(documents.notebook_of(notebook)).cells[0].source


@pytest.mark.parametrize("notebook", catalog.notebooks())
def test_a_head_promises_what_is_stored(notebook):
    head = head_of(notebook)
    card = "H100" if "on an H100" in head else "H200"
    for low, high, unit, whose in BEATEN.findall(head):
        scale = 100 if unit == "% of" else 1
        stored = [scale * ratio for ratio in ratios(notebook, card, whose == "`torch")]
        for said in filter(None, (low, high)):
            assert any(agrees(said, value) for value in stored), f"{said} {unit} {whose}: {stored}"


def test_the_head_of_each_chapter_says_what_is_beaten():
    chapters = {name[:2] for name in catalog.notebooks() if BEATEN.search(head_of(name))}
    # 05 is about faults, and 13 about right answers.
    assert {f"{n:02}" for n in range(16) if n not in (5, 13)} <= chapters


NUMBER_OF_POWER = r"\d\.\de-\d+"


def attention_at(name: str, heads: str, S: str, D: str, causal: str = "") -> Entry:
    """What is stored of an attention on an H100 at a size of its own or another."""
    sizes = {"heads": int(heads), "S": int(S), "D": int(D), "causal": int(bool(causal))}
    stored = STORED["H100"].of(catalog.load(BY_NAME[name]))
    return next(entry for entry in stored if entry.sizes == sizes)


def differences(entry: Entry, peer: str, said: dict[str, str]) -> list[str]:
    """What a table says wrongly of a kernel and of a peer, by column; a dash says "not known"."""
    ours, other = entry.own(), next(row for row in entry.rows if row.label == peer)
    columns = {
        "ours": ours.median_ms,
        "theirs": other.median_ms,
        "rested": other.median_ms / ours.median_ms,
        "sustained": None
        if None in (ours.sustained_ms, other.sustained_ms)
        else other.sustained_ms / ours.sustained_ms,
    }
    return [
        f"{column}: {text}, stored {columns[column]}"
        for column, text in said.items()
        if (text == "–") != (columns[column] is None)
        or (text != "–" and not agrees(text, columns[column]))
    ]


BY = {"mma": "flash_attention_mma", "wgmma": "flash_attention_hopper"}


def test_the_table_of_exact_attention_is_what_is_stored_at_each_size():
    text = documents.read(documents.notebook_of("14_attention_2_tensor_cores")).cells[-1].source
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    rows = [row for row in rows if row[0] in BY]
    assert len(rows) == 5
    for by, sizes, *said in rows:
        columns = dict(zip(("ours", "theirs", "rested", "sustained"), said, strict=True))
        entry = attention_at(BY[by], *sizes.split(", "))
        assert differences(entry, "PyTorch", columns) == [], (by, sizes)


def test_the_table_of_attention_in_bfloat16_is_what_is_stored():
    text = documents.read(documents.notebook_of("14_attention_2_tensor_cores")).cells[-1].source
    entry = attention_at("flash_attention_bf16", "32", "8192", "128")
    of = {row.label: row for row in entry.rows}
    labels = {"ours": entry.own().label, "`torch.compile`, scores in memory": "torch.compile bf16"}
    labels["`flex_attention`"] = "flex_attention"
    table = text[text.index("In bfloat16") :].split("\n\n")[1].splitlines()[2:]
    assert len(table) == 5
    for name, rested, sustained, error in (line.strip("| ").split(" | ") for line in table):
        row = of[labels.get(name, name)]
        assert agrees(rested, row.median_ms) and agrees(sustained, row.sustained_ms), name
        assert agrees(error, row.error), name


def test_the_front_page_quotes_what_is_stored_of_attention():
    text = " ".join((ROOT / "README.md").read_text().split())
    words = rf"takes ({NUMBER}) ms for 32 heads of 8,192 keys, PyTorch's fused fp32 kernel "
    sentence = re.search(rf"{words}({NUMBER}): ({NUMBER}) × rested, ({NUMBER}) × sustained", text)
    columns = dict(zip(("ours", "theirs", "rested", "sustained"), sentence.groups(), strict=True))
    entry = attention_at("flash_attention_hopper", "32", "8192", "128")
    assert differences(entry, "PyTorch", columns) == []
    by_mma = re.search(rf"By `mma`.*? takes ({NUMBER}) ms .*? PyTorch's ({NUMBER})\.", text)
    largest = re.search(rf"each row \(15\) take ({NUMBER}) ms, PyTorch's `topk` ({NUMBER})\.", text)
    for name, sentence in (("flash_attention_mma", by_mma), ("topk_rows", largest)):
        columns = dict(zip(("ours", "theirs"), sentence.groups(), strict=True))
        assert differences(entry_of(name, "H100"), "PyTorch", columns) == [], name


def test_steps_of_training_are_quoted_as_stored():
    stored = (ROOT / "results/attention_training.md").read_text()
    h100, h200 = stored.split("## On an NVIDIA H200")
    theirs, ours = (
        re.search(rf"\| {row} \| ({NUMBER})", h100)[1] for row in ("PyTorch fp32", "ours")
    )
    text = " ".join((ROOT / "README.md").read_text().split())
    said = re.search(rf"forward and backward take ({NUMBER}) ms, PyTorch's ({NUMBER})\.", text)
    assert agrees(said[1], float(ours)) and agrees(said[2], float(theirs))
    cells = documents.read(documents.notebook_of("14_attention_3_training")).cells
    words = rf"take ({NUMBER}) ms, where PyTorch's fp32 attention takes ({NUMBER}) "
    head = re.search(words, cells[0].source)
    assert agrees(head[1], float(ours)) and agrees(head[2], float(theirs))
    words = rf"({NUMBER}) to ({NUMBER}) times .*?\(({NUMBER}) to ({NUMBER}) on an H200"
    spread = next(filter(None, (re.search(words, c.source) for c in cells))).groups()
    for card, least, most in ((h100, *spread[:2]), (h200, *spread[2:])):
        times = [float(x) for x in re.findall(rf"- ({NUMBER})x, required", card)]
        assert len(times) == 6
        assert agrees(least, min(times)) and agrees(most, max(times))
    for line in re.findall("- errors.*", stored):  # "each error smaller"
        pair = [re.findall(NUMBER_OF_POWER, half) for half in line.split("; ours")]
        assert all(float(b) < float(a) for a, b in zip(*pair, strict=True)), line


def test_what_is_left_to_win_is_drawn_of_what_is_stored():
    cells = documents.read(documents.notebook_of("15_short_pieces")).cells
    source = next(cell.source for cell in cells if "pieces = {" in cell.source)
    drawn = re.findall(rf": \(({NUMBER}), ({NUMBER}), ", source)
    names = "cumsum_rows", "histogram", "convolution", "cross_entropy", "cumsum_long"
    for name, (eager, compiled) in zip(names, drawn, strict=True):
        text = f"; PyTorch {eager}, `torch.compile` {compiled}"
        assert of_peers(text, entry_of(name, "H100")) == [], name


TABLE = "| kernel | ms | TFLOP/s |\n|---|---|---|\n| `gemm_tiled` (02) | {} | {} |\n"


@pytest.mark.parametrize(
    ("text", "benched", "wrong"),
    [
        ("`gemm_tiled` took 15.6 ms.", None, ["gemm_tiled: 15.6 ms, stored 15.514"]),
        ("`gemm_tiled` took 15.5 ms, `gemm_coalesced` took 22 ms.", None, []),
        (TABLE.format("15.6", "8.8"), None, ["gemm_tiled: 15.6 ms", "gemm_tiled: 8.8 TFLOP/s"]),
        (TABLE.format("15.5", "8.9"), None, []),
        ("On an H200: 5.4 ms.", "gemm_2d", []),
        ("5.29 ms on an H200.", "gemm_2d", ["gemm_2d: 5.29 ms, stored 5.3908"]),
        ("On an H200 (measured 2026-11-20): 5.39 ms.", "gemm_2d", ["gemm_2d: measured 2026-11-20"]),
        ("On an H100 (measured 2026-11-27): 15.1 ms.", "gemm_tiled", []),
        ("15.5 ms on an H100.", "gemm_tiled", ["gemm_tiled: 15.5 ms, stored 15.1"]),
        ("On an H100: 0.0940 ms; PyTorch 0.296.", "histogram", []),
        (
            "On an H100: 0.0940 ms, where PyTorch takes 0.3 and `torch.compile` 0.30.",
            "histogram",
            [],
        ),
        ("On an H100: 0.0940 ms; PyTorch 0.289.", "histogram", ["PyTorch: 0.289 ms, stored 0.29"]),
    ],
)
def test_what_is_not_stored_is_found(text, benched, wrong):
    count, lines = disagreements(text, benched)
    assert count and len(lines) == len(wrong), lines
    assert all(one.startswith(start) for one, start in zip(lines, wrong, strict=True))


def test_variants_are_left_alone():
    text = "| kernel | ms |\n|---|---|\n| `gemm_tiled` without padding | 80.9 |\n| cuBLAS | 2.7 |\n"
    assert disagreements(text + "Blocks of 32 took 5 ms on an H200.", None) == (0, [])
