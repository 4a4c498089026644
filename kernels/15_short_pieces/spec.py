"""15: short pieces that beat PyTorch: sums along a row, a histogram, a convolution, a loss."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch.utils.weak import WeakIdKeyDictionary

from utils.course import At, Exercise, Gate, Precision
from utils.course.case_values import (
    heavy_tailed,
    lowest,
    normal,
    uniform,
    whole,
    whole_number,
    wide,
)
from utils.course.common_gates import (
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
    few_shared_loads,
)
from utils.course.precision import under
from utils.cuda import cub


def size(rows, channels):
    return {"rows": rows, "channels": channels}


def quads_of_rows(metric, advice):
    """A request of a warp for 32 quads of a row."""
    return Gate(metric, 1.125, advice, ideal=lambda rows, channels: rows * channels / 128)


CUMSUM = Exercise(
    name="cumsum_serial",
    title="running sums of each row, a thread for each row",
    shapes={"x": "rows channels", "out": "rows channels"},
    outputs=("out",),
    reference=lambda x: x.cumsum(dim=1),
    magnitudes=(1e-30, 1e32),
    ladder="cumsum",
    flops=lambda rows, channels: rows * channels,
    peers={"PyTorch": lambda x: x.cumsum(dim=1)},
    library="PyTorch",
    at=At(
        check=(
            size(1, 1),
            size(3, 5),
            size(14, 31),
            size(9, 64),
            size(37, 511),
            size(6, 1025),  # quads do not fill a row; one thread of the block has a second one
            size(1, 8192),  # a tile
            size(2, 8193),
            size(3, 9004),
        ),
        card=(size(70_001, 33), size(4096, 8192), size(15, 1_000_003)),
        bench=size(4096, 8192),
        draw=size(32, 40),
        gates=size(32, 1024),
        drawn=(
            {"rows": (3, 5), "channels": (22_000, 26_000)},
            {"rows": (300, 400), "channels": (170, 220)},
        ),
    ),
)


def histogram(x):
    """How many values lie in each 256th of [0, 1]; none that lies elsewhere, and no NaN."""
    return torch.histc(x, 256, 0.0, 1.0).int()


def spread(sizes, generator):
    """Uniform over [0, 1), but one in 64 is 1, the end of the last bin."""
    x = uniform((sizes["n"],), generator)
    return {"x": torch.where(uniform(x.shape, generator) < 1 / 64, 1.0, x)}


def one_bin(sizes, generator):
    """All values are equal: all lanes want one bin."""
    x = torch.full((sizes["n"],), whole_number(0, 257, generator) / 256)
    return {"x": x.to(generator.device)}


def edges(sizes, generator):
    """Where bins begin, the last one's end too; a rounding below and above; -0."""
    x = torch.randint(257, (sizes["n"],), generator=generator, device=generator.device) / 256
    way = torch.randint(-1, 2, x.shape, generator=generator, device=x.device)
    x = torch.where(way == 0, x, torch.nextafter(x, way.to(x.dtype) * 2))
    return {"x": torch.where(x == 0, -x, x)}


def outside(sizes, generator):
    """Most values lie outside, of which some are infinite, some NaN, some far away."""
    x = 8 * normal((sizes["n"],), generator)
    kind = torch.randint(12, x.shape, generator=generator, device=x.device)
    for number, value in enumerate((float("nan"), float("inf"), float("-inf"), 1e30, -1e30)):
        x[kind == number] = value
    return {"x": x}


def crowded(sizes, generator):
    """Most values lie in a few bins, as those of a picture do."""
    return {"x": 0.5 + normal((sizes["n"],), generator) / 256}


def few(n, blocks):
    return {"n": n, "blocks": blocks}


HISTOGRAM = Exercise(
    name="histogram_global",
    title="a histogram of 256 bins, all of them in global memory",
    shapes={"x": "n", "counts": "256"},
    outputs=("counts",),
    reference=histogram,
    exact=True,
    inputs=spread,
    kinds={
        "one bin": one_bin,
        "full bin": one_bin,
        "edges": edges,
        "outside": outside,
        "crowded": crowded,
    },
    ladder="histogram",
    traffic=lambda n, blocks: 4 * n,
    flops=lambda n, blocks: n,
    peers={"CUB": cub.histogram, "PyTorch": lambda x: torch.histc(x, 256, 0.0, 1.0)},
    library="PyTorch",
    at=At(
        check=(
            few(1, 1),
            few(31, 3),
            few(1000, 2),
            few(8192, 1),  # one whole round
            few(8195, 2),
            few(30_002, 3),
            few(40_001, 5),
        ),
        corners={"full bin": few(2_200_000, 1)},  # more than 16 bits count, in each lane too
        card=(few(10_000_019, 132), few(1 << 24, 2112)),
        bench=few(1 << 26, 528),
        draw=few(1024, 1),
        gates=few(1 << 17, 16),
        gated={"blocks": (9, 24)},
        drawn=({"n": (250_000, 400_000), "blocks": (1, 8)},),
    ),
)


def some_images(images, height, width):
    return {"images": images, "height": height, "width": width}


def windows(sizes, generator):
    """Normal; or some are far above the others, or many 0."""
    kind = (normal, heavy_tailed, whole)[whole_number(0, 3, generator)]
    return {"w": kind((7, 7), generator)}


def not_finite(sizes, generator):
    """NaN or infinity in the middle, which lies inside of the image for each of its elements."""
    w = windows(sizes, generator)["w"]
    w[3, 3] = (float("nan"), float("inf"))[whole_number(0, 2, generator)]
    return {"w": w}


CONVOLUTION = Exercise(
    name="convolution_naive",
    title="a 7 x 7 convolution of images of one channel, a thread for each element",
    shapes={"x": "images height width", "w": "7 7", "out": "images height width"},
    outputs=("out",),
    reference=lambda x, w: F.conv2d(x[:, None], w[None, None], padding=3)[:, 0],
    inputs=windows,
    kinds={"not finite in the window": not_finite},
    magnitudes=(1e-30, 1e34),
    must_read={"w": 1 / 49},  # of a small image, nothing lies below most of the window
    ladder="convolution",
    flops=lambda images, height, width: 98 * images * height * width,
    peers={"PyTorch": lambda x, w: F.conv2d(x[:, None], w[None, None], padding=3)[:, 0]},
    library="PyTorch",
    at=At(
        check=(
            some_images(1, 1, 1),
            some_images(3, 3, 2),
            some_images(2, 9, 31),
            some_images(1, 64, 128),  # one block
            some_images(1, 65, 129),
            some_images(1, 63, 127),
            some_images(1, 40, 260),
        ),
        card=(some_images(33, 500, 500), some_images(300, 65, 131), some_images(1, 5000, 3000)),
        bench=some_images(32, 1024, 1024),
        draw=some_images(1, 192, 384),
        gates=some_images(1, 64, 128),
        drawn=(
            {"images": (2, 4), "height": (130, 170), "width": (200, 270)},
            {"images": (1, 2), "height": (1, 7), "width": (1, 140)},  # lower than the window
        ),
    ),
)


def tiles_of(images, height, width):
    """Tiles of 64 x 128 elements of out."""
    return images * height * width / (64 * 128)


def cross_entropy(x, target):
    """(loss, grad): of each row, and of their mean by x."""
    logs = torch.log_softmax(x, dim=1)
    right = torch.arange(x.shape[1], device=x.device) == target[:, None]
    loss = -logs.gather(1, target[:, None])[:, 0]
    return loss, (logs.exp() - right.to(x.dtype)) / len(x)


def pytorch(x, target):
    """The mean loss, and its gradient."""
    leaf = x.detach().requires_grad_()
    loss = F.cross_entropy(leaf, target)
    return loss, torch.autograd.grad(loss, leaf)[0]


def targets(sizes, generator):
    """A class for each row; one in eight is the first, and one in four the last."""
    classes, rows = sizes["classes"], (sizes["rows"],)
    drawn = torch.randint(classes, rows, generator=generator, device=generator.device)
    way = torch.randint(8, rows, generator=generator, device=generator.device)
    drawn[way == 0], drawn[way >= 6] = 0, classes - 1
    return {"target": drawn}


def last_class(sizes, generator):
    """The last class of each row is the right one."""
    target = torch.full((sizes["rows"],), sizes["classes"] - 1, device=generator.device)
    return {"target": target}


def sure(sizes, generator):
    """One class of each row is 30 above all others: every second time it is the right one."""
    target = targets(sizes, generator)["target"]
    x = normal((sizes["rows"], sizes["classes"]), generator)
    at = target.roll(whole_number(0, 2, generator))[:, None]
    return {"x": x.scatter_add(1, at, torch.full_like(at, 30, dtype=x.dtype)), "target": target}


def excluded(sizes, generator):
    """-inf for about half of the classes: of a row the right one, of another one all of them. In
    one, all classes have the lowest floats."""
    x = normal((sizes["rows"], sizes["classes"]), generator)
    x = x.masked_fill(uniform(x.shape, generator) < 0.5, float("-inf"))
    target = targets(sizes, generator)["target"]
    rows = torch.randperm(len(x), generator=generator, device=generator.device)
    x[rows[-1], target[rows[-1]]] = float("-inf")
    x[rows[1:-1][:1]] = lowest((x.shape[1],), generator)
    x[rows[0]] = float("-inf")
    return {"x": x, "target": target}


def labelled(rows, classes):
    return {"rows": rows, "classes": classes}


LONG = Exercise(
    name="cumsum_long_word",
    title="running sums of a long array: a tile tells sum and status in one word",
    shapes={"x": "n", "out": "n"},
    outputs=("out",),
    reference=lambda x: x.cumsum(dim=0),
    magnitudes=(1e-30, 1e30),
    ladder="long cumsum",
    flops=lambda n: n,
    peers={"CUB": cub.inclusive_sum, "PyTorch": lambda x: x.cumsum(dim=0)},
    library="PyTorch",
    at=At(
        check=(
            {"n": 1},
            {"n": 31},
            {"n": 1000},
            {"n": 4096},  # a tile of 15.5
            {"n": 4097},
            {"n": 8192},  # two of them, or a larger one
            {"n": 20_479},  # one short of tiles
        ),
        card=({"n": 10_000_019}, {"n": 1 << 24}),
        bench={"n": 1 << 26},
        draw={"n": 8192},
        gates={"n": 1 << 16},
        drawn=({"n": (700_000, 800_000)},),  # tiles that look back further than 32
    ),
)


def largest(x):
    """(values, places): of each row the 32 largest, the largest first, of equal ones the earlier.
    A shorter row is filled up with -inf, at -1."""
    x = x.masked_fill(x.isnan(), float("nan"))  # with a sign, a GPU's sort puts it below -inf
    filled = F.pad(x, (0, 32), value=float("-inf"))
    values, places = filled.sort(dim=1, descending=True, stable=True)
    return values[:, :32], places[:, :32].where(places[:, :32] < x.shape[1], -1)


def equals(sizes, generator):
    """Whole numbers, so that many are equal; of about half of the rows zeros, of either sign, are
    the largest."""
    x = whole((sizes["rows"], sizes["channels"]), generator)
    x = torch.where(uniform((len(x), 1), generator) < 0.5, x, -x.abs())
    return {"x": torch.where((x == 0) & (uniform(x.shape, generator) < 0.5), -x, x)}


def masked(sizes, generator):
    """-inf, but for a few elements of each row, fewer than are asked for."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    seen = uniform(x.shape, generator) < 8 / x.shape[1]
    return {"x": x.masked_fill(~seen, float("-inf"))}


def rising(sizes, generator):
    """Each row rises, but for a few: nearly every element is larger than all before it."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    few = uniform(x.shape, generator) < 1 / 64
    return {"x": torch.where(few, x, x.sort(dim=1).values)}


def many_nan(sizes, generator):
    """About half of each row is infinite or NaN, either of both signs."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    kind = torch.randint(4, x.shape, generator=generator, device=generator.device)
    x = torch.where(kind == 0, x * float("inf"), x)
    return {"x": torch.where(kind == 1, (x * float("nan")).copysign(x), x)}


def votes_and_merges(rows, channels):
    """Shuffles and votes: one for each 32 elements, and merges of 22. Most are made where 8 warps
    share a row: of c random elements each merges 32 * log(c / 32) after the first 32, and then what
    is left."""
    return rows * (channels / 32 + 8 * 22 * (2 + math.log(channels / 8 / 32)))


TOPK = Exercise(
    name="topk_rounds",
    notebook="15_short_pieces_2_largest",
    title="the 32 largest of each row, in 32 rounds",
    shapes={"x": "rows channels", "values": "rows 32", "places": "rows 32"},
    outputs=("values", "places"),
    reference=largest,
    exact=True,
    magnitudes=(1e-44, 3e38),
    kinds={"many equal": equals, "rising": rising, "many NaN": many_nan, "masked": masked},
    ladder="topk",
    traffic=lambda rows, channels: 4 * rows * channels + 12 * 32 * rows,
    flops=lambda rows, channels: rows * channels,
    peers={
        "sorting all": lambda x: x.sort(dim=1, descending=True),
        "PyTorch": lambda x: x.topk(32, dim=1),
    },
    library="PyTorch",
    at=At(
        check=(
            size(1, 1),
            size(3, 29),
            size(4, 32),  # as long as asked for
            size(14, 33),
            size(9, 64),
            size(5, 257),  # one channel more than the loads that are under way
            size(37, 500),
            size(2, 3071),
        ),
        card=(size(70_001, 33), size(4096, 8192), size(15, 1_000_003)),
        bench=size(4096, 8192),
        draw=size(4, 256),
        gates=size(4, 8192),
        drawn=(
            {"rows": (3, 5), "channels": (22_000, 26_000)},
            {"rows": (300, 400), "channels": (170, 220)},
        ),
    ),
)


def linear_int8(x, W, x_scale, W_scale):
    return x.to(x_scale.dtype) @ W.to(x_scale.dtype).T * x_scale[:, None] * W_scale


def dequantised(x, W, x_scale, W_scale):
    """As a layer without a kernel of its own: floats are made of the weights in each call."""
    return (x * x_scale[:, None]) @ (W * W_scale[:, None]).T


KEPT = WeakIdKeyDictionary()  # weights -> the same in bfloat16


def of_bf16(x, W, x_scale, W_scale):
    """A layer that never was int8: its weights stay in bfloat16 between calls."""
    if W not in KEPT:
        KEPT[W] = (W * W_scale[:, None]).bfloat16()
    return (x * x_scale[:, None]).bfloat16() @ KEPT[W].T


def whole_bytes(sizes, generator):
    """Every value of a byte, as likely as any other one; of a few rows all are 0."""

    def drawn(rows):
        shape, on = (rows, sizes["K"]), {"generator": generator, "device": generator.device}
        x = torch.randint(-128, 128, shape, **on).to(torch.int8)
        return x.masked_fill(uniform((rows, 1), generator) < 1 / 8, 0)

    return {"x": drawn(sizes["M"]), "W": drawn(sizes["N"])}


def ends(sizes, generator):
    """Bytes at both ends of their range; at one of them in about half of the rows of each, for the
    largest sums that there are."""

    def at_ends(x):
        same = torch.where(uniform((len(x), 1), generator) < 0.5, x[:, :1], x)
        return torch.where(same < 0, -128, 127).to(torch.int8)

    return {name: at_ends(x) for name, x in whole_bytes(sizes, generator).items()}


def any_scales(sizes, generator):
    """Scales from tiny to large."""
    rows = ("x_scale", "M"), ("W_scale", "N")
    scales = {name: wide((sizes[size],), generator, 1e-14, 1e14) for name, size in rows}
    return {**whole_bytes(sizes, generator), **scales}


def some_rows(M, N, K):
    return {"M": M, "N": N, "K": K}


LINEAR = Exercise(
    name="linear_int8_bytes",
    notebook="15_short_pieces_2_largest",
    title="a linear layer of int8, byte by byte, a warp for each element",
    shapes={"x": "M K", "W": "N K", "x_scale": "M", "W_scale": "N", "out": "M N"},
    outputs=("out",),
    reference=linear_int8,
    inputs=whole_bytes,
    kinds={"ends of the range": ends, "largest sums": ends, "any scales": any_scales},
    ladder="linear int8",
    precision=Precision.INT8,
    traffic=lambda M, N, K: (M + N) * K + 4 * (M + N + M * N),
    flops=lambda M, N, K: 2 * M * N * K,
    peers={
        "bf16, weights kept": under(Precision.BF16, of_bf16),
        "PyTorch int8": under(Precision.INT8, dequantised),
    },
    library="PyTorch int8",
    at=At(
        check=(
            some_rows(1, 1, 1),
            some_rows(3, 5, 2),
            some_rows(8, 16, 512),  # whole blocks
            some_rows(9, 17, 528),
            some_rows(2, 33, 47),
            some_rows(15, 6, 1009),  # one byte beyond 63 stretches of 16
            some_rows(1, 70, 496),
        ),
        corners={"largest sums": some_rows(8, 8, 4100)},  # of 27 bits
        card=(some_rows(8, 5001, 3000), some_rows(40, 1000, 4096)),
        bench=some_rows(8, 8192, 8192),
        draw=some_rows(8, 4, 64),
        gates=some_rows(8, 32, 1024),
        edges=False,  # rows of no whole vectors are read byte by byte
        drawn=(
            {"M": (9, 12), "N": (17, 20), "K": (4000, 4300)},
            {"M": (1, 4), "N": (300, 350), "K": (200, 240)},
        ),
    ),
)

# Of a histogram of which each lane has its own copy.
A_COPY_EACH = (
    COALESCED_LOADS,
    Gate(
        "load requests to global memory",
        1.125,
        "count in shared memory, and let each block add every bin to counts once, neighbouring "
        "bins by neighbouring lanes",
        ideal=lambda n, blocks: n / 128 + 8 * blocks,
    ),
    Gate(
        "wavefronts per shared atomic",
        1.125,
        "give each lane a copy of all bins, in a bank of its own: then no lane waits for "
        "another one of its warp, whatever the values are",
    ),
    NO_CONFLICTS,
)

EXERCISES = (
    CUMSUM,
    replace(
        CUMSUM,
        number="15.1",
        name="cumsum_rows",
        title="running sums of each row, by a block that reads it once",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory", "load quads, which stay in registers: once each"
            ),
            quads_of_rows("store requests to global memory", "store quads"),
            NO_CONFLICTS,
            Gate(
                "barriers a block",
                2,
                "scan all 64 sums between two barriers, not those of each quad by themselves",
                ideal=lambda rows, channels: 2 * -(-channels // 8192),
            ),
            few_shared_loads(lambda rows, channels: rows * channels, lambda rows, channels: rows),
        ),
        at=replace(CUMSUM.at, draw=size(1, 1024)),
        points=20,
        effort="about 15 lines",
    ),
    HISTOGRAM,
    replace(
        HISTOGRAM,
        number="15.2",
        name="histogram",
        title="a histogram of 256 bins, of which each lane has its own copy",
        gates=A_COPY_EACH,
        points=20,
        effort="about 10 lines",
    ),
    replace(
        HISTOGRAM,
        name="histogram_branchless",
        title="a histogram in which what lies outside has a bin, too, so that no value is skipped",
        gates=A_COPY_EACH,
    ),
    CONVOLUTION,
    replace(
        CONVOLUTION,
        number="15.3",
        name="convolution",
        title="a 7 x 7 convolution of images of one channel, a tile with a halo for each block",
        gates=(
            replace(COALESCED_LOADS, times=1.5),  # rows of the tile begin in the midst of a sector
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.25,
                "let the block load its tile once, in quads: 70 rows of 34",
                ideal=lambda **sizes: tiles_of(**sizes) * (70 * 34 / 32 + 2),
            ),
            Gate(
                "load requests to shared memory",
                1.25,
                "read a row of the tile once, as three quads, for all rows of out that it is part "
                "of: their sums stay in registers",
                # 14 rows of three quads, and the window.
                ideal=lambda **sizes: tiles_of(**sizes) * 8 * (14 * 3 + 49),
            ),
            NO_CONFLICTS,
        ),
        points=25,
        effort="about 10 lines",
    ),
    Exercise(
        number="15.4",
        name="cross_entropy",
        title="cross-entropy of each row, and the gradient of its mean, of one read",
        shapes={"x": "rows classes", "target": "rows", "loss": "rows", "grad": "rows classes"},
        outputs=("loss", "grad"),
        reference=cross_entropy,
        inputs=targets,
        kinds={"sure": sure, "excluded": excluded, "last class": last_class},
        magnitudes=(1e-12, 1e37),
        traffic=lambda rows, classes: 8 * rows * classes + 12 * rows,
        flops=lambda rows, classes: 5 * rows * classes,
        peers={"PyTorch": pytorch},
        library="PyTorch",
        at=At(
            check=(
                labelled(1, 1),
                labelled(3, 5),
                labelled(14, 31),
                labelled(9, 64),
                labelled(37, 511),
                labelled(3, 4097),  # one thread of the block has a second quad
                labelled(2, 33_793),  # more than registers hold; one beyond blocks
                labelled(1, 33_000),
            ),
            corners={"last class": labelled(1, 65_551)},  # of 17 bits
            card=(labelled(70_001, 33), labelled(8192, 32_000), labelled(15, 1_000_003)),
            bench=labelled(8192, 32_000),
            draw=labelled(2, 64),
            gates=labelled(16, 4096),
            drawn=(
                {"rows": (2, 3), "classes": (34_000, 40_000)},
                {"rows": (300, 400), "classes": (170, 220)},
            ),
        ),
        gates=(
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.125,
                "take maximum and sum of the quads that stay in registers, and the gradient, too",
                # A row's quads; its class, once for each warp; the value of that class.
                ideal=lambda rows, classes: rows * classes / 128 + 33 * rows,
            ),
            Gate(
                "store requests to global memory",
                1.125,
                "store quads, and the loss of a row once",
                ideal=lambda rows, classes: rows * classes / 128 + rows,
            ),
            NO_CONFLICTS,
        ),
        points=20,
        effort="about 10 lines",
    ),
    replace(
        LONG,
        number="15.5",
        name="cumsum_long",
        title="running sums of a long array, of one read: tiles that look back at each other",
        gates=(
            replace(COALESCED_LOADS, times=1.5),  # a look back begins anywhere
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.5,
                "load quads, once: what tiles must know of each other is in own and upto",
                # The quads of a tile; its ticket, what it tells and what it asks.
                ideal=lambda n: n / 4096 * (32 + 8),
            ),
            Gate(
                "launches",
                1,
                "let tiles tell each other their sums, in one launch",
                ideal=lambda n: 1,
            ),
            NO_CONFLICTS,
        ),
        points=25,
        effort="about 12 lines",
    ),
    LONG,
    TOPK,
    replace(
        TOPK,
        number="15.6",
        name="topk_rows",
        title="the 32 largest of each row, of one read: few pass the bar, and wait to be merged",
        gates=(
            Gate(
                "load requests to global memory",
                1.125,
                "read a row once: what may be among its largest stays in registers and the queue",
                # A row, and the values of the 32 that were found.
                ideal=lambda rows, channels: rows * (channels / 32 + 1),
            ),
            Gate(
                "shuffles and votes",
                1.4,
                "let a key wait in the queue until it holds 32, and merge those at once; and let "
                "only keys above the bar, the smallest of the best so far, into the queue",
                # One warp alone needs half; to merge at every vote, 1.7 times.
                ideal=votes_and_merges,
            ),
            Gate(
                "store requests to shared memory",
                1.4,
                "let a key wait in the queue until it holds 32: lanes that exchange keys for each "
                "load, in shared memory as well, do what a vote would spare them",
                ideal=votes_and_merges,  # as many: a merge may go through shared memory, too
            ),
        ),
        points=25,
        effort="about 10 lines",
    ),
    LINEAR,
    replace(
        LINEAR,
        number="15.7",
        name="linear_int8",
        title="a linear layer of int8: four products an instruction, 16 bytes a load",
        gates=(
            COALESCED_LOADS,
            Gate(
                "load requests to global memory",
                1.125,
                "load 16 bytes at a time, and multiply those of four rows of W by all eight of x",
                # For each 512 of K 4 rows of W and 8 of x; then the scales.
                ideal=lambda M, N, K: -(-M // 8) * -(-N // 4) * (12 * K / 512 + 2),
            ),
            Gate(
                "products of bytes, four at once",
                1.0,
                "let __dp4a() multiply four bytes by four others, and add them up",
                ideal=lambda M, N, K: M * N * K,
                at_least=True,
            ),
        ),
        points=20,
        effort="about 10 lines",
    ),
)
