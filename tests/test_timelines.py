"""Time lines of the five models: what is read, and that the same figures give the same picture."""

import json

import pytest

from utils.course.models import MODELS
from utils.ground.errors import WorkbookError
from utils.timing import timelines
from utils.timing.timelines import Timelines


def data(date: str = "2026-11-21") -> dict:
    parts = {
        "eager": [["linear", 2.7], ["group_norm", 0.2], ["leaky_relu", 0.03], ["x + x", 0.03]],
        "fused": [["linear", 2.7], ["gn_leaky_relu_double", 0.02]],
        "whole": {"PyTorch": 2.96, "torch.compile": 2.73, "linear + our tail": 2.72},
    }
    models = {"gn_leaky_relu_double": parts}
    return {"gpu": "Some GPU", "date": date, "torch": "2.11.0", "models": models}


@pytest.fixture
def folder(tmp_path, place):
    place(results=tmp_path)
    (tmp_path / timelines.FOLDER).mkdir()
    return tmp_path / timelines.FOLDER


def test_the_latest_figures_are_taken(folder):
    for name, date in (("a", "2026-11-20"), ("b", "2026-11-22"), ("c", "2026-11-21")):
        (folder / f"{name}.json").write_text(json.dumps(data(date)))
    got = timelines.stored()
    assert (got.gpu, got.date) == ("Some GPU", "2026-11-22")
    line = got.models["gn_leaky_relu_double"]
    assert line.linear == 2.7 and line.tail == pytest.approx(0.26)


@pytest.mark.parametrize("text", ["", "[]", '{"gpu": "x"}', '{"models": {"a": {"eager": [1]}}}'])
def test_a_malformed_file_is_a_clear_error(folder, text):
    (folder / "x.json").write_text(text)
    with pytest.raises(WorkbookError, match=r"x\.json"):
        timelines.stored()


def test_no_file_at_all_says_what_makes_one(folder):
    with pytest.raises(WorkbookError, match=r"benchmarks/timeline\.py"):
        timelines.stored()


def test_the_picture_is_the_same_every_time_and_says_its_figures(folder):
    (folder / "x.json").write_text(json.dumps(data()))
    got = timelines.stored()
    svg = timelines.picture(got).svg()
    assert svg == timelines.picture(got).svg()
    assert "task 62 eager: linear 2.7 ms, group_norm 0.2 ms" in svg
    with pytest.raises(WorkbookError, match="gn_leaky_relu_double"):
        timelines.picture(got, ["gn_min_bias"])


def test_each_part_has_a_name_in_the_legend_and_a_look_of_its_own(folder):
    (folder / "x.json").write_text(json.dumps(data()))
    patches = timelines.picture(timelines.stored()).figure.legends[0].get_patches()
    looks = {patch.get_label(): (patch.get_facecolor(), patch.get_hatch()) for patch in patches}
    assert set(looks) == {"linear", "group_norm", "leaky_relu", "x + x", "fused tail"}
    assert len(set(looks.values())) == len(looks)


def test_the_stored_ones_are_of_all_five_models():
    stored: Timelines = timelines.stored()
    assert set(stored.models) == set(MODELS)
    for line in stored.models.values():
        assert [label for label, _ in line.fused] == ["linear", line.name]
        assert min(ms for _, ms in (*line.eager, *line.fused)) > 0
