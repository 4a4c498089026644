"""What a page lets its reader choose: each warp's request of each line, counted as pictures are."""

from itertools import pairwise

from support import traces
from support.gallery import scene, shown

from utils.diagrams.parts.requests import MIME, requests
from utils.watch.trace import GLOBAL, SHARED


def test_each_warp_of_each_line_is_there_with_its_cost():
    data = requests(scene(traces.gemm(32, 32, 8, "row"), ("C",)), GLOBAL)
    first = data["instructions"][0]
    assert first["what"] == "line 9: load of A" and len(first["warps"]) == 32
    seen = first["warps"][3]
    assert seen["name"] == "warp 3 of block 0" and seen["cost"] == "32 sectors, ideal 4"
    assert seen["lanes"] == " ".join(map(str, range(32))) and seen["size"] == 4
    assert {after - before for before, after in pairwise(map(int, seen["bytes"].split()))} == {32}


def test_banks_come_with_their_wavefronts():
    data = requests(scene(traces.linear_tiled(32, 32, 32)), SHARED)
    costs = {one["what"]: one["warps"][0]["cost"] for one in data["instructions"]}
    assert costs["line 20: load of Ws"] == "32 wavefronts, ideal 1"
    assert data["memory"] == "banks" and len(data["colors"].split()) == 32


def test_only_pictures_of_requests_carry_them():
    assert MIME in shown("naive")._repr_mimebundle_()[0]
    assert MIME not in shown("tree")._repr_mimebundle_()[0]
