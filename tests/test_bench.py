"""bench: nothing is timed unchecked, nothing is called measured that was not."""

import base64
import itertools
import json
import re
from dataclasses import replace

import matplotlib
import pytest
import torch
from support import toys
from support.fakes import FakeKernel
from support.figures import entry
from support.toys import gemm

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.precision import Precision, plain, precision_of, under
from utils.diagrams.table import Table
from utils.ground.errors import CheckFirst, ToolError, WorkbookError
from utils.judge import oracle
from utils.timing import bench as bench_module
from utils.timing import measure, peers, plots, results, roofline
from utils.timing.bench import _estimated, _plot, _show, bench, bench_all
from utils.timing.roofline import Ceilings
from utils.timing.rows import ESTIMATE, KINDS, Results, Row, digits

H200 = "NVIDIA H200"
NAIVE, COALESCED = "01_naive_gemm/gemm_naive", "01_naive_gemm/gemm_coalesced"


@pytest.fixture(autouse=True)
def folder(no_figures, monkeypatch):
    monkeypatch.setattr("utils.timing.bench._session", {})
    # A fake has no text to estimate from.
    monkeypatch.setattr("utils.timing.bench._estimated", lambda *_: ([], "No estimate."))
    return no_figures


def kernel(exercise=toys.GEMM, **fields) -> FakeKernel:
    return FakeKernel(gemm, exercise, **{"trusted": True, **fields})


def real(id: str, **fields) -> FakeKernel:
    return kernel(catalog.load(id), **fields)


def figures(id: str, median: float, label: str | None = None):
    exercise = catalog.load(id)
    made = entry(median)
    ours = replace(made.ours(), label=label or exercise.name, p20_ms=median, p80_ms=median)
    rows = (ours, *made.rows[1:])
    sizes = dict(exercise.at.bench)
    numbers = {"bytes": exercise.bytes(**sizes), "flops": exercise.flops(**sizes)}
    return replace(made, sizes=sizes, rows=rows, **numbers)


def store(*pairs, gpu=H200):
    path = results.path_of(gpu)
    results.write(path, Results(gpu, {id: figures(id, median) for id, median in pairs}))


def test_without_a_gpu_the_readers_own_text_is_estimated():
    exercise = catalog.load(COALESCED)
    text = catalog.solution_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    (row,), note = _estimated(kernel, dict(exercise.at.bench), H200)
    assert row.label == "your kernel, estimated" and row.kind not in KINDS
    assert f"about {row.median_ms:.3g} ms" in note
    assert "ms on an NVIDIA H200" in note and note.endswith("An estimate: nothing was measured.")


def test_where_nothing_can_be_estimated_bench_says_why(monkeypatch):
    def fail(*args, **sizes):
        raise WorkbookError("no figures of that GPU")

    monkeypatch.setattr("utils.timing.estimate.estimate", fail)
    assert _estimated(kernel(), {}, H200) == ([], "No estimate: no figures of that GPU")


# --- what may be timed


def test_an_unchecked_kernel_is_refused():
    with pytest.raises(CheckFirst, match=r"run check\(gemm\) first"):
        bench(kernel(trusted=False))


def test_a_starter_is_told_so(capsys):
    bench(kernel(trusted=False, untouched=True))
    assert "not attempted yet" in capsys.readouterr().out


def test_a_size_that_does_not_exist_is_refused():
    with pytest.raises(WorkbookError, match="no size 'P'; it has M, N, K"):
        bench(kernel(), P=3)


# --- without a GPU


def test_without_figures_there_is_an_estimate_that_says_so(capsys):
    bench(kernel())
    out = capsys.readouterr().out
    assert "Nothing was measured here" in out and "no stored figures" in out
    assert "estimate, not measured" in out


def test_stored_figures_are_labelled_with_gpu_and_date(capsys):
    store((NAIVE, 300.0))
    bench(real(NAIVE))
    out = capsys.readouterr().out
    assert "Nothing was measured here" in out
    assert "Stored figures" in out and "as reference: NVIDIA H200, 2026-11-20." in out


def test_stored_figures_are_of_the_same_sizes_only(capsys):
    store((NAIVE, 300.0))
    bench(real(NAIVE), M=128)
    assert "no stored figures for these sizes" in capsys.readouterr().out


def test_the_readers_estimate_comes_first_and_what_is_stored_is_called_reference(
    capsys, monkeypatch
):
    own = Row("your kernel, estimated", ESTIMATE, 60.0, 60.0, 60.0)
    monkeypatch.setattr("utils.timing.bench._estimated", lambda *_: ([own], "Estimated."))
    store((NAIVE, 300.0), (COALESCED, 30.0))
    shown = []
    monkeypatch.setattr("utils.timing.bench._show", lambda table, plot: shown.extend([table, plot]))
    bench(real(COALESCED))
    table, plot = shown
    labels = [row[0] for row in table.rows]
    assert labels[:3] == [own.label, "gemm_naive, reference", "gemm_coalesced, reference"]
    assert table.rows[0][4] == "–", "no range of what was not measured"
    assert [row[-1] for row in table.rows[:3]] == ["5×", "1×", "10×"], "over the first measured"
    assert plot.alt.startswith("your kernel, estimated")
    bars = plot.figure.axes[0].patches
    assert [bool(bar.get_hatch()) for bar in bars][:3] == [True, False, False]


def test_the_ladder_holds_the_rungs_before_and_ends_with_the_library(capsys):
    store((NAIVE, 300.0), (COALESCED, 30.0), ("02_shared_memory_tiling/gemm_tiled", 20.0))
    bench(real(COALESCED))
    lines = capsys.readouterr().out.splitlines()
    labels = [line.split("  ")[0] for line in lines[3 : lines.index("", 3)]]
    own = ["gemm_naive, reference", "gemm_coalesced, reference"]
    assert labels == [*own, "torch.compile", "cuBLAS"]
    assert lines[4].endswith("10×")
    assert "speed-up: how many times as fast as gemm_naive, reference" in lines


# --- with a GPU, as far as there need be none


def measured(monkeypatch, median: float, gpu=H200):
    def measure(kernel, sizes, both_ways=True):
        return figures(kernel.exercise.id, median), ["torch.compile failed here: no Triton"]

    monkeypatch.setattr("utils.timing.measure.measure", measure)
    monkeypatch.setattr("utils.timing.measure.gpu", lambda: gpu)
    monkeypatch.setattr("utils.timing.measure.copy_bandwidth", lambda: 1e12)


def test_what_was_measured_is_not_called_stored(capsys, monkeypatch):
    measured(monkeypatch, 299.0)
    bench(real(NAIVE, backend="cuda"))
    out = capsys.readouterr().out
    assert "stored" not in out.lower() and "Nothing was measured" not in out
    assert "torch.compile failed here" in out


def test_rungs_of_this_session_come_before_stored_ones(capsys, monkeypatch):
    store((NAIVE, 300.0))
    measured(monkeypatch, 30.0)
    bench(real(COALESCED, backend="cuda"))
    assert "gemm_naive *" in capsys.readouterr().out  # stored, and marked so
    measured(monkeypatch, 200.0)
    bench(real(NAIVE, backend="cuda"))
    measured(monkeypatch, 30.0)
    capsys.readouterr()
    bench(real(COALESCED, backend="cuda"))
    out = capsys.readouterr().out
    assert "gemm_naive *" not in out and re.search(r"^gemm_naive +fp32 +– +200 ", out, re.M)


def test_a_run_that_keeps_no_figures_times_single_calls_alone(capsys, monkeypatch):
    row, back_to_back = Row("ours", "ours", 1.0, 1.0, 1.0), []
    ready = measure.Ready("ours", "ours", None, None, lambda share: [1.0] * 5, lambda *_: None)
    monkeypatch.setattr(measure.Ready, "sustained", lambda *_: back_to_back.append(1) or row)
    assert measure._rows([ready], [], both_ways=False)[0].label == "ours" and not back_to_back
    measure._rows([ready], [], both_ways=True)
    assert back_to_back

    measured(monkeypatch, 30.0)
    ways, plain = [], measure.measure

    def times(kernel, sizes, both_ways):
        ways.append(both_ways)
        return plain(kernel, sizes, both_ways)

    monkeypatch.setattr("utils.timing.measure.measure", times)
    bench(real(NAIVE, backend="cuda"))
    assert "back to back" not in capsys.readouterr().out
    monkeypatch.setenv("WORKBOOK_RESTED", "1")
    bench(real(NAIVE, backend="cuda"))
    assert ways == [True, False] and bench_module.RESTED in capsys.readouterr().out


def test_a_second_size_costs_neither_the_first_nor_its_rungs(capsys, monkeypatch, folder):
    def measure(kernel, sizes, both_ways=True):
        made = figures(kernel.exercise.id, float(sizes["M"]), "gemm")
        exercise = kernel.exercise
        numbers = {"bytes": exercise.bytes(**sizes), "flops": exercise.flops(**sizes)}
        return replace(made, sizes=sizes, **numbers), []

    measured(monkeypatch, 1.0)
    monkeypatch.setattr("utils.timing.measure.measure", measure)
    monkeypatch.setenv("WORKBOOK_RESULTS", str(results.path_of(H200)))
    for id in (NAIVE, COALESCED):
        for size in ({}, {"M": 128}):
            bench(real(id, backend="cuda"), **size)
    assert set(results.read(results.path_of(H200)).entries) == {
        f"{id}{size}" for id in (NAIVE, COALESCED) for size in ("", ", M=128 N=4096 K=4096")
    }
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("gemm  ") and "128" in line for line in lines) == 3  # 1, then 2
    bench(real(NAIVE), M=128)
    assert "Stored figures" in capsys.readouterr().out


@pytest.mark.parametrize("groups", [256, 512])
def test_rungs_are_of_the_same_sizes_where_bytes_do_not_tell(capsys, groups):
    serial, block = "06_groupnorm/groupnorm_serial", "06_groupnorm/groupnorm_block"
    few = dict(catalog.load(serial).at.bench)
    many = {**few, "groups": 512}
    entries = {
        results.key(catalog.load(id), sizes): replace(figures(id, median), sizes=sizes)
        for id, sizes, median in ((serial, few, 77.0), (serial, many, 55.0), (block, many, 11.0))
    } | {block: figures(block, 22.0)}
    results.write(results.path_of(H200), Results(H200, entries))
    bench(real(block), groups=groups)
    (rung,) = re.findall(
        r"^groupnorm_serial, reference +fp32 +– +(\d+)", capsys.readouterr().out, re.MULTILINE
    )
    assert rung == {256: "77", 512: "55"}[groups]


def test_a_rung_may_lack_a_size(capsys):
    store(("04_reductions/sum_warp", 30.0), ("04_reductions/sum_grid", 10.0))
    bench(real("04_reductions/sum_grid"))
    assert "\nsum_warp, reference " in capsys.readouterr().out


def test_rungs_of_another_gpu_are_left_out(capsys, monkeypatch):
    store((NAIVE, 300.0))
    measured(monkeypatch, 30.0, gpu="NVIDIA L4")
    bench(real(COALESCED, backend="cuda"))
    out = capsys.readouterr().out
    assert "gemm_naive" not in out and "% of ceiling" not in out
    assert f"knows no figures of an NVIDIA L4: those in its notebooks are an {H200}'s" in out


@pytest.mark.parametrize("gpu", [H200, "NVIDIA H100 80GB HBM3"])
def test_of_a_gpu_that_is_known_no_such_thing_is_said(capsys, monkeypatch, gpu):
    measured(monkeypatch, 30.0, gpu=gpu)
    bench(real(COALESCED, backend="cuda"))
    assert "knows no figures" not in capsys.readouterr().out


def test_bench_is_logged(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_LOG", str(tmp_path / "log"))
    store((NAIVE, 300.0))
    bench(real(NAIVE))
    measured(monkeypatch, 200.0)
    bench(real(NAIVE, backend="cuda"))
    stored, fresh = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert (stored["measured"], fresh["measured"]) == (False, True)
    assert stored["gpu"] == H200 and stored["date"] == "2026-11-20"
    assert fresh["rows"][0]["label"] == "gemm_naive"
    assert fresh["rows"][0]["median_ms"] == 200.0


def test_one_that_fails_does_not_cost_the_others(capsys, monkeypatch, folder):
    def compile_answer(exercise, text, backend):
        if exercise.name == "gemm_naive":
            raise ToolError("out of order")
        return kernel(exercise, backend="cuda")

    monkeypatch.setattr("utils.ground.settings.backend", lambda: "cuda")
    monkeypatch.setattr("utils.timing.bench.compile_answer", compile_answer)
    monkeypatch.setattr("utils.timing.bench.check", lambda kernel: None)
    measured(monkeypatch, 3.0)
    path = folder / "new.json"
    assert bench_all(["01_naive_gemm"], path) == 1
    assert "gemm_naive: ToolError: out of order" in capsys.readouterr().out
    assert COALESCED in results.read(path).entries


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_nothing_is_saved(capsys, folder):
    assert bench_all(["01_naive_gemm"], folder / "x.json") == 2
    assert not (folder / "x.json").exists()


# --- like with like

TF32, SPLIT = Precision.TF32, Precision.SPLIT_FP16
PERSISTENT = "11_hopper/linear_persistent"


def in_tf32(compiled=Precision.FP32):
    """11.4 beside PyTorch in fp32 and in TF32, and what torch.compile made."""
    made = figures(PERSISTENT, 3.0)
    rows = (
        replace(made.ours(), precision=TF32, error=2.9e-4),
        Row("PyTorch fp32", "eager", 20.0, 20.0, 20.0, precision=Precision.FP32, error=1.6e-6),
        Row("torch.compile", "compile", 21.0, 21.0, 21.0, precision=compiled),
        Row("PyTorch TF32", "library", 3.3, 3.3, 3.3, precision=TF32),
    )
    return replace(made, rows=rows)


def test_what_has_another_precision_is_shown_and_not_compared(capsys):
    results.write(results.path_of(H200), Results(H200, {PERSISTENT: in_tf32()}))
    bench(real(PERSISTENT))
    lines = {line.split("  ")[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    ours, eager = lines["linear_persistent, reference"], lines["PyTorch fp32"]
    assert ours[2:5] == ["TF32", "2.9e-4", "3"] and ours[-3:] == ["110", "74.1", "1×"]
    assert eager[2:5] == ["fp32", "1.6e-6", "20"] and eager[-3:] == ["–"] * 3
    assert lines["torch.compile"][-3:] == ["–"] * 3
    assert lines["PyTorch TF32"][-3:] == ["100", "67.4", "0.909×"]


def test_a_peer_with_a_wrong_result_is_shown_and_not_compared(capsys):
    made = figures(NAIVE, 300.0)
    fast = Row("torch.compile", "compile", 1.0, 1.0, 1.0, precision=Precision.FP32, error=0.051)
    others = [row for row in made.rows if row.kind != "compile"]
    rows = [replace(row, precision=Precision.FP32) for row in (*others, fast)]
    wrong = replace(made, rows=tuple(rows))
    right = replace(made, rows=(*rows[:-1], replace(fast, error=0.049)))
    assert wrong.compiled() is None and right.compiled()
    for one, end, said in ((wrong, ["–"] * 3, True), (right, ["300×"], False)):
        results.write(results.path_of(H200), Results(H200, {NAIVE: one}))
        bench(real(NAIVE))
        out = capsys.readouterr().out
        assert ("torch.compile: another result, so not compared" in out) == said
        line = next(line for line in out.splitlines() if line.startswith("torch.compile "))
        assert line.split()[-len(end) :] == end and (" 0.051 " in line) == said
        assert "Other precisions" not in out


def test_the_table_says_what_its_precisions_mean(capsys):
    results.write(results.path_of(H200), Results(H200, {PERSISTENT: in_tf32()}))
    bench(real(PERSISTENT))
    assert "TF32: factors keep 10 bits of a float's fraction; sums are fp32; fp32" in (
        capsys.readouterr().out
    )
    store((NAIVE, 300.0))
    bench(real(NAIVE))
    assert "factors" not in capsys.readouterr().out


def test_a_kernel_as_exact_as_floats_is_compared_with_floats():
    ours, fp32, tf32 = (Row("", "ours", 1, 1, 1, precision=p) for p in (SPLIT, "fp32", TF32))
    assert ours.alike(replace(fp32, precision=Precision.FP32)) and not ours.alike(tf32)
    unknown = replace(ours, precision=None)
    assert not unknown.alike(unknown) and not ours.alike(unknown)


def test_what_is_compiled_has_the_precision_of_the_kernel(monkeypatch):
    monkeypatch.setattr(peers, "_compiled", lambda function: function)
    exercise = catalog.load(PERSISTENT)
    by_label = {peer.label: peer for peer in peers.of(exercise, exercise.at.bench)}
    compiled = by_label["torch.compile TF32"]
    assert compiled.precision is TF32 and list(by_label)[-1] == "PyTorch TF32"
    assert plain(compiled.function) is plain(exercise.peers["PyTorch TF32"])
    whole = catalog.load("11_hopper/linear_swish_bias_gn_hopper")
    labels = [
        next(
            p.label for p in peers.of(whole, {**whole.at.bench, "terms": n}) if p.kind == "compile"
        )
        for n in (3, 1)
    ]
    assert labels == ["torch.compile", "torch.compile TF32"]


def test_tf32_is_on_for_what_is_of_tf32_and_no_longer():
    seen = []

    def look():
        seen.append(torch.backends.cuda.matmul.allow_tf32)

    with oracle.full_precision():
        under(TF32, look)()
        look()
        under(Precision.FP16, look)()
    assert seen == [True, False, False]


def test_every_kernel_that_rounds_its_factors_has_a_peer_that_does():
    for exercise in catalog.exercises():
        own = exercise.precision_of(exercise.at.bench).peer
        peers_of = [precision_of(function) for function in exercise.peers.values()]
        assert own is Precision.FP32 or own in peers_of, exercise.id
        if own is not Precision.FP32:
            assert precision_of(exercise.peers[exercise.library]) is own, exercise.id


# --- which card


def test_figures_of_the_card_that_is_chosen_are_shown(capsys, monkeypatch):
    store((NAIVE, 300.0), (COALESCED, 30.0))
    store((NAIVE, 400.0), gpu="NVIDIA H100 80GB HBM3")
    bench(real(NAIVE))
    out = capsys.readouterr().out
    assert "reference: NVIDIA H200" in out
    assert "There are figures of NVIDIA H100 80GB HBM3, too: set WORKBOOK_GPU" in out
    monkeypatch.setenv("WORKBOOK_GPU", "NVIDIA H100 80GB HBM3")
    bench(real(NAIVE))
    assert "reference: NVIDIA H100 80GB HBM3" in capsys.readouterr().out
    monkeypatch.setenv("WORKBOOK_GPU", "NVIDIA L4")
    with pytest.raises(WorkbookError, match="figures of NVIDIA H200, NVIDIA H100 80GB HBM3"):
        bench(real(NAIVE))


# --- predictions


def test_a_prediction_is_the_larger_of_two_times():
    limits = Ceilings("x", bytes_per_second=1e12, flops_per_second=1e13)
    assert roofline.predict(limits, 10**9, 10**9) == roofline.Prediction(1.0, "memory")
    assert roofline.predict(limits, 10**9, 10**11) == roofline.Prediction(10.0, "arithmetic")


def test_an_exercise_of_two_ways_is_predicted_by_the_one_that_it_is_asked_for():
    exercise = catalog.load("11_hopper/linear_swish_bias_gn_hopper")
    halves = [exercise.halves({**exercise.at.bench, "terms": n}) for n in (3, 1)]
    assert halves == [3, 2]  # one product in TF32 takes as long as two of halves


def test_three_products_of_halves_are_predicted_by_the_rate_of_tensor_cores():
    limits = Ceilings("x", 1e12, flops_per_second=1e13, halves_per_second=3e14)
    assert roofline.predict(limits.by_tensor_cores(3), 10**9, 10**12).milliseconds == 10.0
    assert limits.by_tensor_cores(0) == limits
    assert roofline.predict(Ceilings("x", 1e12, 1e13).by_tensor_cores(3), 10**9, 10**12) is None


def test_nothing_is_invented():
    assert roofline.ceilings("NVIDIA Unheard Of") == Ceilings("NVIDIA Unheard Of", 0, 0)
    assert roofline.predict(Ceilings("x"), 10**9, 1) is None
    no_rate = Ceilings("x", bytes_per_second=1e12)
    assert roofline.predict(no_rate, 10**9, 10**9).bound == "memory"
    assert roofline.predict(no_rate, 10**9, 10**12) is None


def test_figures_have_three_digits_and_no_exponents():
    shown = [digits(x) for x in (6.2601e-5, 0.00123456, 0.5, 12.345, 99.96, 3456.7)]
    assert shown == ["0.0000626", "0.00123", "0.5", "12.3", "100", "3457"]


def test_units_are_decimal():
    assert roofline.quantity(4.28e12, "B/s") == "4.28 TB/s"
    assert roofline.quantity(137438953472, "FLOP") == "137 GFLOP"
    assert roofline.quantity(12, "B") == "12 B"


# --- tables and plots

ROWS = entry().rows


def test_a_plot_is_the_same_every_time_and_says_what_it_shows():
    first = plots.bars(ROWS, "gemm_naive on X", 0.5)
    again = plots.bars(ROWS, "gemm_naive on X", 0.5)
    assert first.svg() == again.svg() and first.png() == again.png()
    assert '<svg role="img" aria-label="gemm_naive on X. gemm_naive 2 ms' in first.svg()
    assert "dashed: predicted" in first.svg() and "<dc:date>" not in first.svg()


def test_a_plot_does_not_depend_on_the_readers_settings(monkeypatch):
    first = plots.bars(ROWS, "gemm_naive on X").png()
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 20.0)
    assert plots.bars(ROWS, "gemm_naive on X").png() == first


def test_a_plot_is_shown_where_svg_is_not(monkeypatch):
    """JupyterLab shows no SVG of a notebook that was executed elsewhere."""
    shown = []
    monkeypatch.setattr("IPython.get_ipython", lambda: object())
    monkeypatch.setattr("IPython.display.display", shown.append)
    _show(Table("", ["x"], [["1"]]), plots.bars(ROWS, "gemm_naive on X"))
    data, metadata = shown[1]._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "gemm_naive 2 ms" in data["text/plain"] and "gemm_naive 2 ms" in data["image/svg+xml"]
    assert "gemm_naive 2 ms" in metadata["image/png"]["alt"]


def test_a_kernel_that_waits_for_memory_is_drawn_by_its_bandwidth(monkeypatch):
    moved = []
    monkeypatch.setattr(plots, "bars", lambda rows, title, ms, bytes: moved.append(bytes))
    for id, median in (("00_start_here/axpy", 0.5), (NAIVE, 300.0)):
        exercise = catalog.load(id)
        _plot(exercise, figures(id, median), ROWS, roofline.ceilings(H200))
    axpy = catalog.load("00_start_here/axpy")
    assert moved == [axpy.bytes(**axpy.at.bench), 0]


def test_bandwidth_in_a_plot():
    svg = plots.bars(ROWS, "axpy on X", 0.5, 8_000_000).svg()
    assert 'aria-label="axpy on X. gemm_naive 4 GB/s' in svg
    assert "GB/s (dashed: predicted)" in svg and "milliseconds" not in svg


def test_bars_far_from_the_prediction_are_drawn_on_a_logarithmic_scale():
    assert "logarithmic" not in plots.bars(ROWS, "axpy on X", 0.5).svg()
    assert "logarithmic" in plots.bars(ROWS, "axpy on X", 1e-4).svg()


def test_text_from_outside_is_escaped():
    svg = plots.bars(ROWS, 'a <b> & "c"').svg()
    assert 'aria-label="a &lt;b&gt; &amp; &quot;c&quot;' in svg
    html = Table("", ["<i>"], [["<b>"]])._repr_html_()
    assert ' title="&lt;i&gt;">&lt;b&gt;</td>' in html and "<b>" not in html and "<i>" not in html


def test_columns_of_words_are_set_left_and_source_is_marked():
    table = Table("", ["line", "source", "requests"], [["7", "a < b;", "32"]], left=2, code=[1])
    assert "line  source  requests\n7     a < b;        32" in str(table)
    html = table._repr_html_()
    code = '<code style="white-space: pre-wrap">a &lt; b;</code>'
    assert f'<td style="text-align: left" title="source">{code}</td>' in html
    assert '<td style="text-align: right" title="requests">32</td>' in html


def test_a_terminal_gets_the_beginning_of_long_source_and_a_page_all_of_it():
    table = Table("", ["source"], [["x" * 70]], code=[0])
    assert f"{'x' * 59}…" in str(table) and "x" * 60 not in str(table)
    assert "x" * 70 in table._repr_html_()


def test_only_in_a_wide_table_a_name_may_be_broken():
    assert "<wbr>" not in Table("", ["kernel"], [["gemm_tiled"]])._repr_html_()
    wide = Table("", [""] * 5, [["gemm_tiled", *"1234"]])._repr_html_()
    assert "gemm_<wbr>tiled" in wide and 'class="workbook-table workbook-wide"' in wide


@pytest.mark.parametrize(("shortest", "predicted"), [(0.0574, 0.0236), (24.8, 0.001), (3.0, 2.2)])
def test_the_numbers_of_a_logarithmic_axis_stand_apart(shortest, predicted):
    rows = [
        Row("one", "ours", *[shortest] * 3),
        Row("other", "library", *[22 * max(shortest, predicted)] * 3),
    ]
    figure = plots.bars(rows, "axpy on X", predicted).figure
    figure.draw_without_rendering()
    labels = [t for t in figure.axes[0].get_xticklabels(which="both") if t.get_text()]
    ends = sorted((box.x0, box.x1) for box in (label.get_window_extent() for label in labels))
    assert len(ends) > 2 and all(a[1] < b[0] for a, b in itertools.pairwise(ends))


def test_an_error_is_of_what_is_finite_in_truth():
    truth = {"out": torch.tensor([3.0, 4.0, torch.inf], dtype=torch.float64)}
    assert measure.accuracy(torch.tensor([3.0, 4.5, torch.inf]), truth) == 0.1
    assert measure.accuracy(torch.tensor([3.0, torch.nan, torch.inf]), truth) is None
    assert measure.accuracy(torch.tensor([3.0, 4.5]), truth) is None
    exact = {"sums": torch.zeros(2), **truth}
    assert measure.accuracy((torch.zeros(2), torch.tensor([3.0, 4.0, 0.0])), exact) == 0.0
