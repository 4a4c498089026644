"""14: attention: softmax and RMSNorm of rows, then the product that never stores its scores."""

from dataclasses import replace
from functools import cache

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from utils.course import At, Exercise, Gate
from utils.course.case_values import heavy_tailed, lowest, normal, uniform, whole_number, with_nan
from utils.course.common_gates import (
    COALESCED_LOADS,
    COALESCED_STORES,
    NO_CONFLICTS,
    few_shared_loads,
)
from utils.course.precision import Precision, under


def size(rows, channels):
    return {"rows": rows, "channels": channels}


def ascending(sizes, generator):
    """Each value is larger than those before it: the running maximum moves all the time."""
    steps = uniform((sizes["rows"], sizes["channels"]), generator)
    return {"x": 4 * steps.cumsum(dim=1) - 100}


def dominant(sizes, generator):
    """One value of each row is 100 above all others; their exponentials are 0 beside its own."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    place = torch.randint(x.shape[1], (len(x), 1), generator=generator, device=generator.device)
    return {"x": x.scatter_add(1, place, torch.full_like(place, 100, dtype=x.dtype))}


def masked(sizes, generator):
    """-inf before one place of each row, and in a few behind it; not all along a row."""
    x = normal((sizes["rows"], sizes["channels"]), generator)
    at = torch.arange(x.shape[1], device=x.device)
    begin = torch.randint(x.shape[1], (len(x), 1), generator=generator, device=x.device)
    few = uniform(x.shape, generator) < 0.1
    return {"x": x.masked_fill((at < begin) | few & (at != begin), float("-inf"))}


def all_masked(sizes, generator):
    """A row of -inf has no softmax: NaN, as in PyTorch. A row of the lowest floats has one."""
    x = masked(sizes, generator)["x"]
    rows = torch.randperm(len(x), generator=generator, device=x.device)
    x[rows[1:2]] = lowest((x.shape[1],), generator)
    x[rows[0]] = float("-inf")
    return {"x": x}


ROWS = At(
    check=(
        size(1, 1),
        size(3, 1),
        size(3, 5),
        size(14, 30),
        size(9, 64),
        size(37, 511),  # among the largest, with threads that have nothing; one short of blocks
        size(6, 1025),  # quads do not fill a row; one thread of the block has a second one
        size(2, 9001),  # more than 256 threads keep in registers
        size(3, 9004),
    ),
    card=(size(70_001, 33), size(4096, 8192), size(15, 1_000_003)),
    bench=size(4096, 8192),
    draw=size(2, 64),
    gates=size(32, 1024),
    drawn=(
        {"rows": (3, 5), "channels": (22_000, 26_000)},
        {"rows": (300, 400), "channels": (170, 220)},
    ),
)


def softmax(x):
    """Of each row."""
    return torch.softmax(x, dim=1)


SOFTMAX = Exercise(
    name="softmax_three_passes",
    title="softmax of each row, a warp for each row, in three passes over it",
    shapes={"x": "rows channels", "out": "rows channels"},
    outputs=("out",),
    reference=softmax,
    kinds={
        "ascending": ascending,
        "one dominant": dominant,
        "masked": masked,
        "a row of -inf": all_masked,
    },
    magnitudes=(1e-12, 1e37),
    ladder="softmax",
    flops=lambda rows, channels: 4 * rows * channels,  # a maximum; subtract, add, divide
    peers={"PyTorch": softmax},
    library="PyTorch",
    at=ROWS,
)


def quads_of_rows(metric, number, advice):
    """`number` requests of a warp for 32 quads of x."""
    return Gate(metric, 1.125, advice, ideal=lambda rows, channels: number * rows * channels / 128)


def of_heads(heads, S, D, causal):
    return {"heads": heads, "S": S, "D": D, "causal": causal}


def attention(q, k, v, D, causal):
    """(weights, out): of each query, softmax over the keys; `causal`: over those not behind it."""
    scores = q @ k.transpose(1, 2) / D**0.5
    if causal:
        at = torch.arange(scores.shape[1], device=q.device)
        scores = scores.masked_fill(at[:, None] < at, float("-inf"))
    weights = torch.softmax(scores, dim=2)
    return weights, weights @ v


def pytorch(q, k, v, causal):
    """Its fused kernel, which takes four dimensions."""
    call = torch.nn.functional.scaled_dot_product_attention
    return call(q[None], k[None], v[None], is_causal=bool(causal))[0]


def by_backend(name):
    """One of the fused kernels that PyTorch chooses from."""
    backend = getattr(SDPBackend, name)

    def call(q, k, v, causal):
        with sdpa_kernel(backend):
            return pytorch(q, k, v, causal)

    return call


@cache
def flex_attention():
    """PyTorch's fused attention in Triton, which takes any mask and any function of a score."""
    from torch.nn.attention import flex_attention as flex

    return torch.compile(flex.flex_attention) if torch.cuda.is_available() else flex.flex_attention


@cache
def behind(S, window, device):
    """What a query sees of the keys, for flex_attention: itself, and so many less one before."""
    from torch.nn.attention.flex_attention import create_block_mask

    def sees(_batch, _head, query, key):
        return (key <= query) & (query - key < window)

    return create_block_mask(sees, None, None, S, S, device=device)


def flexible(q, k, v, causal):
    S = q.shape[1]
    mask = behind(S, S, q.device) if causal else None
    return flex_attention()(q[None], k[None], v[None], block_mask=mask)[0]


@cache
def capping(cap, device):
    """A score's function, for flex_attention. A number would be compiled in, each anew; and it
    must use no name of this module, since dynamo cannot import a spec."""
    most = torch.tensor(cap, device=device)

    def capped_score(score, _batch, _head, _query, _key):
        return most * (score / most).tanh()

    return capped_score


def flexible_window(q, k, v, window, cap):
    score = capping(cap, q.device)
    mask = behind(q.shape[1], window, q.device)
    return flex_attention()(q[None], k[None], v[None], score_mod=score, block_mask=mask)[0]


def draw_qkv(sizes, generator):
    """q, k and v, normal."""
    shape = (sizes["heads"], sizes["S"], sizes["D"])
    return {name: normal(shape, generator) for name in ("q", "k", "v")}


def far_from_zero(sizes, generator):
    """Scores of several hundred, of which none may be taken as an exponent."""
    return {name: tensor + 5 for name, tensor in draw_qkv(sizes, generator).items()}


def steep(sizes, generator):
    """Scores of ten thousand, either way: one key has all the weight."""
    drawn = draw_qkv(sizes, generator)
    return {"q": 100 * drawn["q"], "k": 100 * drawn["k"], "v": drawn["v"]}


def one_key(sizes, generator):
    """One key of each head is 30 times as long as the others."""
    drawn = draw_qkv(sizes, generator)
    drawn["k"][:, whole_number(0, sizes["S"], generator)] *= 30
    return drawn


def rising(sizes, generator):
    """Each key has a larger score than those before it: the running maximum moves every time."""
    return ramp(sizes, generator, height=4)


def climbing(sizes, generator):
    """Rising, each score by several: a maximum that stays behind makes weights overflow."""
    return ramp(sizes, generator, height=64)


def ramp(sizes, generator, height):
    """Keys from -height to height."""
    drawn = draw_qkv(sizes, generator)
    steps = torch.linspace(-height, height, sizes["S"], device=generator.device)[:, None]
    return {"q": drawn["q"] / 8 + 1, "k": drawn["k"] / 8 + steps, "v": drawn["v"]}


def equal_scores(sizes, generator):
    """About half of the queries are 0, and half of the keys stand twice, so that scores are equal.
    Of the values some are far above the others, and all may be large or small."""
    drawn = draw_qkv(sizes, generator)
    heads, S, _ = drawn["k"].shape
    zero, twice = (uniform((heads, S, 1), generator) < 0.5 for _ in range(2))
    q = drawn["q"].masked_fill(zero, 0.0)
    k = torch.where(twice, drawn["k"].roll(whole_number(0, S, generator), dims=1), drawn["k"])
    return {"q": q, "k": k, "v": of_any_scale(drawn["v"].shape, generator)}


def of_any_scale(shape, generator):
    """Some are far above the others; all are large, or small, together."""
    return heavy_tailed(shape, generator) * 10 ** (18 * uniform((), generator) - 9)


def not_numbers(sizes, generator):
    """One NaN in q, in k, or in v: there only without a mask, which says nothing of 0 * NaN."""
    drawn = draw_qkv(sizes, generator)
    name = "qkv"[whole_number(0, 2 if sizes["causal"] else 3, generator)]
    return {**drawn, name: with_nan(drawn[name], generator)}


def one_nan(sizes, generator):
    """One NaN in q or in k: it reaches the rows that see it, and no other."""
    return not_numbers({**sizes, "causal": 1}, generator)


def infinite_keys(sizes, generator):
    """An infinity in each of the first keys: weight 0 for about half of the queries, NaN for the
    others. Or one in the value of the first key, where every query sees that."""
    drawn = draw_qkv(sizes, generator)
    key, d = (whole_number(0, sizes[name], generator) for name in ("S", "D"))
    infinity = float("inf") * (1 - 2 * whole_number(0, 2, generator))
    if sizes.get("window", sizes["S"]) >= sizes["S"] and whole_number(0, 2, generator):
        drawn["v"][:, 0, d] = infinity
    else:
        drawn["k"][:, : key + 1, d] = infinity
    return drawn


ATTENTION = Exercise(
    name="attention_naive",
    title="attention in three kernels, with all scores in memory",
    shapes={
        "q": "heads S D",
        "k": "heads S D",
        "v": "heads S D",
        "scores": "heads S S",
        "out": "heads S D",
    },
    outputs=("scores", "out"),
    reference=attention,
    inputs=draw_qkv,
    may_be_one=("q", "k", "v"),
    kinds={
        "far from zero": far_from_zero,
        "steep": steep,
        "one dominant key": one_key,
        "rising": rising,
        "climbing": climbing,
        "equal scores": equal_scores,
        "NaN": not_numbers,
        "infinite keys": infinite_keys,
    },
    flops=lambda heads, S, D, causal: 4 * heads * S * S * D // (1 + causal),
    peers={"PyTorch": pytorch},
    library="PyTorch",
    at=At(
        check=(
            of_heads(1, 1, 64, 0),
            of_heads(2, 5, 64, 1),
            of_heads(3, 33, 128, 0),
            of_heads(1, 64, 64, 1),
            of_heads(2, 63, 64, 0),  # one row short of a tile
            of_heads(1, 129, 128, 1),  # one row in the third tile
            of_heads(1, 150, 64, 0),
        ),
        card=(of_heads(64, 1024, 64, 0), of_heads(3, 1500, 128, 1), of_heads(300, 65, 64, 1)),
        bench=of_heads(64, 2048, 128, 0),
        corners={"climbing": of_heads(1, 320, 64, 0)},
        draw=of_heads(1, 96, 64, 1),
        gates=of_heads(1, 192, 64, 1),
        drawn=({"heads": (1, 2), "S": (250, 350), "D": (64, 64), "causal": (0, 1)},),
        choices={"D": (64, 128), "causal": (0, 1)},
        # A tile is as dear as a whole one, however few of its rows there are: of one head.
        counted=(of_heads(1, 5, 64, 1), of_heads(1, 7, 128, 0)),
    ),
)
# A reduction by shuffles for each key takes the emulator long.
BY_SHUFFLES = replace(
    ATTENTION.at,
    corners={"climbing": of_heads(1, 70, 64, 0)},
    gates=of_heads(1, 48, 64, 1),
)
ON_TENSOR_CORES = replace(ATTENTION.at, tiles={"S": 64})


def by_few_heads(q, k, v, D, causal):
    """out alone, of as many heads at a time as there is room for scores in float64: half a GB."""
    heads, S, _ = q.shape
    few = heads if torch.compiler.is_compiling() else max(1, ROOM // S**2)
    if few >= heads:
        return attention(q, k, v, D, causal)[1]
    parts = zip(*(tensor.split(few) for tensor in (q, k, v)), strict=True)
    return torch.cat([attention(*part, D, causal)[1] for part in parts])


ROOM = 1 << 26  # scores

# Without scores in memory.
FUSED = replace(
    ATTENTION,
    ladder="attention",
    shapes={name: "heads S D" for name in ("q", "k", "v", "out")},
    outputs=("out",),
    reference=by_few_heads,
)

HOPPER = replace(
    ON_TENSOR_CORES,
    check=(
        of_heads(1, 1, 64, 0),
        of_heads(2, 5, 128, 1),
        of_heads(2, 70, 64, 0),
        of_heads(1, 140, 64, 1),  # two tiles each way
        of_heads(1, 130, 128, 0),
    ),
    corners={"climbing": of_heads(1, 140, 64, 1)},
    drawn=({"heads": (1, 2), "S": (200, 260), "D": (64, 64), "causal": (0, 1)},),
)

LOG2_E = 1.4426950408889634  # e^x = 2^(x * LOG2_E)


def hidden(scores):
    """Where a key stands behind the query."""
    at = torch.arange(scores.shape[1], device=scores.device)
    return at[:, None] < at


def statistics(q, k, D, causal):
    """(scores, row_max, row_sum) of each query; scores and row_max are exponents of 2."""
    scores = q @ k.transpose(1, 2) * (LOG2_E / D**0.5)
    if causal:
        scores = scores.masked_fill(hidden(scores), float("-inf"))
    row_max = scores.amax(dim=2)
    return scores, row_max, (scores - row_max[:, :, None]).exp2().sum(dim=2)


def saving(q, k, v, D, causal):
    """(out, row_max, row_sum): attention, and what its backward needs of the softmax."""
    scores, row_max, row_sum = statistics(q, k, D, causal)
    return (scores - row_max[:, :, None]).exp2() @ v / row_sum[:, :, None], row_max, row_sum


def gradients(q, k, v, out, row_max, row_sum, grad_out, D, causal):
    """(dq, dk, dv), from what the forward has saved. What the mask hides is 0, not 0 * NaN."""
    scores = q @ k.transpose(1, 2) * (LOG2_E / D**0.5)
    weights = (scores - row_max[:, :, None]).exp2() / row_sum[:, :, None]
    of_scores = weights * (grad_out @ v.transpose(1, 2) - (grad_out * out).sum(2, keepdim=True))
    if causal:
        mask = hidden(scores)
        weights, of_scores = weights.masked_fill(mask, 0.0), of_scores.masked_fill(mask, 0.0)
    turned = of_scores.transpose(1, 2)
    return of_scores @ k / D**0.5, turned @ q / D**0.5, weights.transpose(1, 2) @ grad_out


def saved_by_few(q, k, v, D, causal):
    """The same, of as many heads at a time as there is room for."""
    return by_few(saving, (q, k, v), D, causal)


def gradients_by_few(q, k, v, out, row_max, row_sum, grad_out, D, causal):
    """The same, of as many heads at a time as there is room for."""
    return by_few(gradients, (q, k, v, out, row_max, row_sum, grad_out), D, causal)


def by_few(function, tensors, D, causal):
    """`function` of few heads at a time; all its results in one piece each."""
    heads, S, _ = tensors[0].shape
    few = heads if torch.compiler.is_compiling() else max(1, ROOM // S**2 // 4)
    if few >= heads:
        return function(*tensors, D, causal)
    parts = zip(*(tensor.split(few) for tensor in tensors), strict=True)
    results = [function(*part, D, causal) for part in parts]
    return tuple(map(torch.cat, zip(*results, strict=True)))


def with_backward(draw):
    """`draw`, with what the forward saves of it, and a gradient of out."""

    def drawn(sizes, generator):
        qkv = draw(sizes, generator)
        exact = [qkv[name].double() for name in ("q", "k", "v")]
        saved = saved_by_few(*exact, sizes["D"], sizes["causal"])
        names = dict(
            zip(("out", "row_max", "row_sum"), (one.float() for one in saved), strict=True)
        )
        kind = of_any_scale if whole_number(0, 2, generator) else normal
        return {**qkv, **names, "grad_out": kind(qkv["q"].shape, generator)}

    drawn.__doc__ = draw.__doc__
    return drawn


def pytorch_gradients(q, k, v, grad_out, causal):
    """Forward and backward of its fused kernel: the backward alone needs what that one saves."""
    leaves = [one.detach().requires_grad_() for one in (q, k, v)]
    return torch.autograd.grad(pytorch(*leaves, causal), leaves, grad_out)


SAVING = replace(
    FUSED,
    ladder="attention that trains",
    shapes={**FUSED.shapes, "row_max": "heads S", "row_sum": "heads S"},
    outputs=("out", "row_max", "row_sum"),
    reference=saved_by_few,
)
BACKWARD = replace(
    FUSED,
    ladder="attention backwards",
    shapes={
        **{name: "heads S D" for name in ("q", "k", "v", "out", "grad_out", "dq", "dk", "dv")},
        "row_max": "heads S",
        "row_sum": "heads S",
    },
    outputs=("dq", "dk", "dv"),
    reference=gradients_by_few,
    inputs=with_backward(draw_qkv),
    hang_together=True,
    kinds={
        kind: with_backward(draw)
        for kind, draw in FUSED.kinds.items()
        if kind not in ("infinite keys", "NaN")
    },
    flops=lambda heads, S, D, causal: 10 * heads * S * S * D // (1 + causal),
    peers={"PyTorch, both ways": pytorch_gradients},
    library="PyTorch, both ways",
)


def of_window(heads, S, D, window):
    return {"heads": heads, "S": S, "D": D, "window": window}


def first_keys(row0, window):
    """Where the tile begins that holds the first key of a block whose rows begin at `row0`."""
    return max(row0 - window + 1, 0) // TILE * TILE


TILE = 64  # rows of a block, and keys of a tile


def capped(q, k, v, D, window, cap):
    """softmax(cap * tanh(scores / cap)) * v, where query i sees the keys from i - window + 1 to i;
    of each tile of queries with the keys before it that it may see."""
    heads, S, _ = q.shape
    before, rest = (min(window, S) + TILE - 2) // TILE * TILE, -S % TILE
    at = torch.arange(before + TILE, device=q.device)
    queries = q[:, torch.arange(S + rest, device=q.device).clamp(max=S - 1)]
    keys, values = (
        torch.nn.functional.pad(one, (0, 0, before, rest)).unfold(1, before + TILE, TILE)
        for one in (k, v)
    )  # (heads, tiles, D, before + TILE), views
    scores = cap * torch.tanh(queries.view(heads, -1, TILE, D) @ keys / D**0.5 / cap)
    behind = at[before:, None] - at
    missing = at[:TILE].new_tensor(range(-before, S - before, TILE))[:, None, None] + at < 0
    hidden = (behind < 0) | (behind >= window) | missing
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=3)
    return (weights @ values.mT).flatten(1, 2)[:, :S]


def visited(S, window):
    """How many tiles of keys the blocks of a head walk over."""
    ends = range(0, S, TILE)
    return sum((row0 - first_keys(row0, window)) // TILE + 1 for row0 in ends)


CAPSTONE = replace(
    FUSED,
    number="14.6",
    name="window_attention",
    title="attention of capped scores in a sliding window, whose walk is as long as the window",
    ladder="",
    reference=capped,
    scalars={"cap": (5.0, 50.0)},
    # No score climbs beyond its cap.
    kinds={k: draw for k, draw in FUSED.kinds.items() if k != "climbing"} | {"NaN": one_nan},
    # Of whole tiles: a key that one row of a block sees, all its rows multiply with.
    flops=lambda heads, S, D, window: 4 * heads * D * TILE**2 * visited(S, window),
    peers={"flex_attention": flexible_window, "PyTorch, by tiles": capped},
    library="PyTorch, by tiles",
    gates=(
        COALESCED_LOADS,
        COALESCED_STORES,
        Gate(
            "load requests to global memory",
            1.125,  # at windows of 129 one tile more is 1.17 times, all before the row 1.33
            "let 64 rows of q share each key and value that the block reads, in quads; begin with "
            "the tile that holds the first key of the block's window, and end with that of its "
            "last row",
            ideal=lambda heads, S, D, window: heads * (S + 2 * TILE * visited(S, window)) * D / 128,
        ),
        Gate(
            "store requests to global memory",
            1.25,
            "let no score or weight reach memory: store rows of out, and nothing else",
            ideal=lambda heads, S, D, window: heads * S * D / 128,
        ),
        NO_CONFLICTS,
    ),
    at=At(
        check=(
            of_window(1, 1, 64, 1),
            of_window(2, 5, 64, 3),
            of_window(3, 33, 128, 1),  # each row sees one key
            of_window(1, 64, 64, 64),
            of_window(2, 70, 64, 6),  # of the first tile, most rows see nothing
            of_window(1, 150, 64, 200),  # the window is longer than the text
            of_window(1, 130, 128, 66),  # the last block begins a key before its second tile
            of_window(1, 200, 64, 65),
            of_window(1, 129, 64, 128),  # whole tiles, which the last row begins in the midst of
        ),
        card=(of_window(64, 1024, 64, 100), of_window(3, 1500, 128, 700)),
        bench=of_window(32, 8192, 128, 1024),
        draw=of_window(1, 192, 64, 40),
        gates=of_window(1, 192, 64, 65),
        gated={"window": (2, 129)},
        drawn=({"heads": (1, 2), "S": (250, 350), "D": (64, 64), "window": (150, 400)},),
        choices={"D": (64, 128)},
    ),
    points=30,
    effort="about 20 lines, and 150 of 14.4",
    notebook="14_attention_4_capstone",
)


EXERCISES = (
    SOFTMAX,
    replace(
        SOFTMAX,
        number="14.1",
        name="softmax_rows",
        at=replace(ROWS, both=True),
        title="softmax of each row, which is read once: a running maximum and a running sum",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory",
                1,
                "take maximum and sum in one pass, of the quads that stay in registers",
            ),
            quads_of_rows("store requests to global memory", 1, "store quads"),
            NO_CONFLICTS,
            few_shared_loads(lambda rows, channels: rows * channels, lambda rows, channels: rows),
        ),
        points=15,
        effort="about 12 lines",
    ),
    Exercise(
        number="14.2",
        name="rms_norm",
        title="RMSNorm of each row, which stays in registers",
        shapes={"x": "rows channels", "weight": "channels", "out": "rows channels"},
        outputs=("out",),
        reference=lambda x, weight, eps: (
            x * (x.square().mean(dim=1, keepdim=True) + eps).rsqrt() * weight
        ),
        scalars={"eps": (1e-6, 10.0)},
        eps=True,
        magnitudes=(1e-12, 1e16),  # their squares add up to less than infinity
        flops=lambda rows, channels: 4 * rows * channels,
        peers={
            "PyTorch": lambda x, weight, eps: torch.rms_norm(x, weight.shape, weight, eps),
        },
        library="PyTorch",
        at=ROWS,
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            quads_of_rows(
                "load requests to global memory",
                2,
                "load quads: those of x once, to stay in registers, and one of weight for each",
            ),
            quads_of_rows("store requests to global memory", 1, "store quads"),
        ),
        points=15,
        effort="about 20 lines",
    ),
    ATTENTION,
    replace(
        FUSED,
        number="14.3",
        name="attention_rows",
        title="attention without scores in memory, 8 lanes for each query",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.25,  # a walk for the maximum, and another one, reads all keys twice
                "walk over keys and values once: rescale l and o where the maximum moves",
                # Four queries of a warp go as far as the last of them: (S + 4) / 2 keys each.
                ideal=lambda heads, S, D, causal: heads * S * (S + 5) * D / 128,
            ),
        ),
        at=BY_SHUFFLES,
        points=15,
        effort="about 6 lines",
    ),
    replace(
        FUSED,
        number="14.4",
        name="flash_attention",
        title="attention by tiles of keys and values, scores and sums in registers",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.25,  # a walk over all keys, where the mask hides half of them, needs 1.5 times
                "let 64 rows of q share each key and value that the block reads, in quads; read "
                "none that the mask hides from all of them",
                ideal=lambda heads, S, D, causal: heads * S * (S / 64 + 2) * D / 128,
            ),
            NO_CONFLICTS,
        ),
        points=25,
        effort="about 25 lines",
    ),
    replace(
        FUSED,
        name="flash_attention_mma",
        title="attention as exact as fp32 by mma, on tensor cores of sm_80 and newer",
        # Halves hold no infinity: a row with one in it becomes NaN.
        kinds={kind: draw for kind, draw in FUSED.kinds.items() if kind != "infinite keys"},
        ladder="attention by mma",
        precision=Precision.SPLIT_FP16,
        at=ON_TENSOR_CORES,
        notebook="14_attention_2_tensor_cores",
    ),
    replace(
        FUSED,
        name="flash_attention_hopper",
        title="attention as exact as fp32, each product as three of halves on tensor cores",
        kinds={kind: draw for kind, draw in FUSED.kinds.items() if kind != "infinite keys"},
        ladder="attention on tensor cores",  # whose copies no count of loads sees
        precision=Precision.SPLIT_FP16,
        peers={"flex_attention": flexible, **FUSED.peers},
        at=HOPPER,
        needs="sm_90a",
        notebook="14_attention_2_tensor_cores",
    ),
    replace(
        FUSED,
        name="flash_attention_bf16",
        title="attention of bfloat16: softmax is taken while the tensor cores add",
        ladder="attention in bfloat16",
        precision=Precision.BF16,
        between=2.0**-9,  # weights are rounded to 8 bits
        peers={
            "scores in memory": under(Precision.BF16, by_few_heads),
            "flex_attention": under(Precision.BF16, flexible),
            "FlashAttention 2": under(Precision.BF16, by_backend("FLASH_ATTENTION")),
            "cuDNN": under(Precision.BF16, by_backend("CUDNN_ATTENTION")),
        },
        library="cuDNN",
        # Four tiles of keys: both stages are used again.
        at=replace(HOPPER, check=(*HOPPER.check, of_heads(1, 390, 64, 1))),
        needs="sm_90a",
        notebook="14_attention_2_tensor_cores",
    ),
    replace(
        BACKWARD,
        number="14.5",
        name="attention_gradients",
        title="the gradients of q, k and v, each row by the lanes that own it",
        gates=(
            COALESCED_LOADS,
            COALESCED_STORES,
            Gate(
                "load requests to global memory",
                1.15,  # of the two walks, one over all S needs 1.3 times
                "walk over keys as far as the mask lets you see, and over queries from there on",
                # Four rows of a warp walk as far as the last of them needs.
                ideal=lambda heads, S, D, causal: heads * S * (S + 5) * (5 * D / 32 + 2) / 8,
            ),
        ),
        at=replace(
            BY_SHUFFLES,
            check=(  # a block owns 16 rows
                of_heads(1, 1, 64, 0),
                of_heads(2, 5, 64, 1),
                of_heads(3, 33, 128, 0),
                of_heads(1, 64, 64, 1),
                of_heads(2, 47, 64, 0),
                of_heads(1, 97, 128, 1),
                of_heads(1, 110, 64, 0),
            ),
        ),
        points=15,
        effort="about 10 lines",
        notebook="14_attention_3_training",
    ),
    replace(
        SAVING,
        name="flash_attention_forward",
        title="attention on tensor cores, which keeps what its backward needs",
        kinds={kind: draw for kind, draw in FUSED.kinds.items() if kind != "infinite keys"},
        precision=Precision.SPLIT_FP16,
        at=HOPPER,
        needs="sm_90a",
        notebook="14_attention_3_training",
    ),
    replace(
        BACKWARD,
        name="flash_attention_backward",
        title="the gradients of attention as exact as fp32, on tensor cores",
        ladder="attention backwards on tensor cores",
        precision=Precision.SPLIT_FP16,
        at=HOPPER,
        needs="sm_90a",
        notebook="14_attention_3_training",
    ),
    CAPSTONE,
)
