"""Stored figures: nothing is lost, nothing malformed is read, everything says where it is from."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.figures import entry

from utils.course import catalog
from utils.ground.errors import WorkbookError
from utils.notebooks import readme
from utils.timing import results
from utils.timing.rows import Results, id_of


@pytest.fixture
def folder(tmp_path, place):
    place(results=tmp_path)
    return tmp_path


def test_what_is_written_is_read(folder):
    path = results.path_of("NVIDIA H200")
    results.write(path, Results("NVIDIA H200", {"01_naive_gemm/gemm_naive": entry()}))
    assert path.name == "NVIDIA_H200.json"
    got = results.read(path)
    assert got.gpu == "NVIDIA H200"
    assert got.entries == {"01_naive_gemm/gemm_naive": entry()}


def test_others_stay_when_one_is_measured_anew(folder):
    path = folder / "x.json"
    results.write(path, Results("A", {"t/one": entry(1.0), "t/two": entry(2.0)}))
    results.write(path, Results("A", {"t/two": entry(3.0, date="2026-12-01")}))
    got = results.read(path).entries
    assert got["t/one"] == entry(1.0)
    assert got["t/two"].ours().median_ms == 3.0 and got["t/two"].date == "2026-12-01"


def test_of_several_that_write_at_once_none_is_lost(folder):
    names = [f"t/{number}" for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        for name in names:
            pool.submit(results.write, folder / "x.json", Results("A", {name: entry()}))
    assert set(results.read(folder / "x.json").entries) == set(names)


def test_figures_of_several_sizes_stand_side_by_side(folder):
    exercise, path = catalog.load("01_naive_gemm/gemm_naive"), folder / "x.json"
    for size in (exercise.at.bench, {"M": 64, "N": 64, "K": 64}, {"M": 8, "N": 8, "K": 8}):
        made = entry(float(size["M"]), sizes=size)
        results.write(path, Results("A", {results.key(exercise, size): made}))
    got = results.read(path)
    assert set(got.entries) == {
        exercise.id,
        *(f"{exercise.id}, M={n} N={n} K={n}" for n in (8, 64)),
    }
    assert {id_of(key) for key in got.entries} == {exercise.id}
    assert dict(got.of(exercise)[0].sizes) == dict(exercise.at.bench)
    assert len(got.of(exercise)) == 3
    assert readme.readme_table().count("`gemm_naive`") == 1


def test_figures_of_two_gpus_do_not_mix(folder):
    results.write(folder / "x.json", Results("A", {"t/one": entry()}))
    with pytest.raises(WorkbookError, match="holds figures of the A, not the B"):
        results.write(folder / "x.json", Results("B", {"t/one": entry()}))


def broken(change):
    data = {"gpu": "A", "entries": {"t/one": json.loads(json.dumps(results.plain(entry())))}}
    change(data, data["entries"]["t/one"])
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, e: d.pop("gpu"), "'gpu' is missing"),
        (lambda d, e: e.pop("rows"), "t/one: 'rows' is missing"),
        (lambda d, e: e.pop("date"), "t/one: 'date' is missing"),
        (lambda d, e: e["rows"][1].pop("p20_ms"), "t/one: row 2: 'p20_ms' is missing"),
        (lambda d, e: e["rows"][0].update(median_ms="fast"), "'median_ms' must not be 'fast'"),
        (lambda d, e: e["rows"][0].update(median_ms=0), "a time in milliseconds, not 0"),
        (lambda d, e: e["rows"][0].update(kind="theirs"), "'kind' is one of"),
        (lambda d, e: e["rows"][0].update(precision="fp8"), "'precision' is one of fp32, TF32"),
        (lambda d, e: e["rows"][0].update(error=-1), "'error' must be a number from 0 on"),
        (lambda d, e: e["sizes"].update(M="big"), "sizes: 'M' must not be 'big'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(folder, change, message):
    path = folder / "x.json"
    path.write_text(json.dumps(broken(change)))
    with pytest.raises(WorkbookError, match=message):
        results.read(path)


def test_rows_of_older_files_have_the_precision_of_their_spec(folder):
    def written(*labels):
        kinds = ("ours", "eager", "compile", "library")
        rows = [
            {"label": label, "kind": kind, "median_ms": 1.0, "p20_ms": 1.0, "p80_ms": 1.0}
            for label, kind in zip(labels, kinds, strict=True)
        ]
        return {**results.plain(entry()), "rows": rows}

    keys = ("11_hopper/linear_persistent", "10_tensor_cores/linear_split", "99_gone/x")
    labels = ("k", "PyTorch fp32", "torch.compile", "PyTorch TF32")
    entries = {key: written(*labels) for key in keys}
    entries[keys[0]]["sizes"] = dict(catalog.load(keys[0]).at.bench)
    (folder / "x.json").write_text(json.dumps({"gpu": "A", "entries": entries}))
    got = results.read(folder / "x.json").entries
    precisions = {key: [row.precision for row in got[key].rows] for key in keys}
    assert precisions[keys[0]] == ["TF32", "fp32", "fp32", "TF32"]
    assert precisions[keys[1]] == ["three fp16", "fp32", "fp32", None]  # it has no such peer
    assert precisions[keys[2]] == [None] * 4
    row = got[keys[0]].ours()
    assert (row.error, row.sustained_ms, row.clock_mhz, row.watts) == (None,) * 4


def test_no_json_at_all_is_said(folder):
    (folder / "x.json").write_text("{")
    with pytest.raises(WorkbookError, match="x.json"):
        results.read(folder / "x.json")


def test_of_as_many_figures_the_latest_come_first(folder):
    results.write(folder / "a.json", Results("A", {"t/one": entry(date="2026-01-01")}))
    results.write(folder / "b.json", Results("B", {"t/one": entry(date="2026-02-01")}))
    (folder / "ceilings.json").write_text("{}")
    assert [one.gpu for one in results.stored()] == ["B", "A"]
    assert [one.gpu for one in results.stored("A")] == ["A"]
    results.write(folder / "a.json", Results("A", {"t/two": entry(date="2026-01-01")}))
    assert [one.gpu for one in results.stored()] == ["A", "B"]


def test_every_file_in_the_repository_is_well_formed():
    for one in results.stored():
        for key, kept in one.entries.items():
            assert results.key(catalog.load(id_of(key)), kept.sizes) == key
