"""Plausible wrong tries, and the words in which their reports let a reader name the fault."""

import pytest

from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.ground.errors import CheckFailed
from utils.judge.check import check

WARP_SUM = "lane < WARPS ? sums[lane] : 0.0f"
DRAFTS = {  # exercise, what stands in the solution, what in its place, what the report says
    "launch turned round": (
        "00_start_here/swish", "<<<blocks, threads>>>", "<<<threads, blocks>>>",
        ["was launched with 256 blocks of", "The order is <<<blocks, threads>>>"],
    ),
    "every element by every thread": (
        "00_start_here/swish_grid_stride", "i += stride", "i++",
        ["does the index count the threads of the whole grid", "and a loop's step all of them"],
    ),
    "barrier in a branch": (
        "02_shared_memory_tiling/gemm_tiled", "        __syncthreads();  // both",
        "        if (row < M) __syncthreads();  // both",
        ["divergent barrier:", "out of any `if`"],
    ),
    "row and column of a tile": (
        "02_shared_memory_tiling/gemm_tiled", "Bs[k][tx]", "Bs[tx][k]",
        ["row and column are swapped in an index of B, or of its tile"],
    ),
    "quads taken for floats": (
        "04_reductions/sum_grid", "int q = first", "int q = 4 * first",
        ["of the 31 elements of x are read"],
    ),
    "row read by every thread": (
        "04_reductions/row_min", "c += THREADS", "c++",
        ["each byte is asked for", "has each thread elements of its own"],
    ),
    "forgotten bias": (
        "01_naive_gemm/linear", "sum + b[col]", "sum",
        ["b is left out (0 in its place)"],
    ),
    "length of another row": (
        "01_naive_gemm/gemm_naive", "A[row * K + k]", "A[row * N + k]",
        ["a row of A has N = ", "it has K = "],
    ),
    "outside a matrix": (
        "01_naive_gemm/gemm_naive", "C[row * N + col]", "C[row * M + col]",
        ["11 | C[row * M + col] = sum;", "15 elements, 5 x 3", "element row * 3 + col"],
    ),
    "swapped grid": (
        "01_naive_gemm/gemm_coalesced", "grid((N + 31) / 32, (M + 31) / 32)",
        "grid((M + 31) / 32, (N + 31) / 32)",
        ["the last row, 32, is missing", "blocks enough in this direction"],
    ),
    "no start value": (
        "01_naive_gemm/gemm_naive", "float sum = 0.0f;", "float sum;",
        ["sum is read here and may have no value by then", "the variable that the warning names"],
    ),
    "NaN of two empty lanes": (
        "06_groupnorm/stats_welford", "    if (count == 0.0f) return a;\n", "",
        ["a NaN comes of 0 / 0", "trace(stats_welford, rows=2, channels=12, groups=4) shows what"],
    ),
    "rows beyond a matrix": (
        "09_fused_linear/linear_gn_min_bias", " && tile.row(i) < M", "",
        ["out of bounds: ", "This line leaves the array, too, as told above"],
    ),
    "keys that nobody has set": (
        "09_fused_linear/row_min_keys", "cudaMemset", "if (false) cudaMemset",
        ["This line adds to what is there, or compares it", "cudaMemset in the launcher"],
    ),
    "rows mixed into one minimum": (
        "09_fused_linear/linear_gn_min_bias", "int step = 2; step < 2 * LANES_N",
        "int step = 1; step <= 16",
        ["column ", " of out changes with other rows of x, and should not"],
    ),
    "floats one by one": (
        "07_pointwise_fusion/swish_multiply_swish", "load4(from, 1, channels, 0, col, whole)",
        "load4(from, 1, channels, 0, col, false)",
        ["which is few enough", "for four neighbours at once, as a float4"],
    ),
    "lanes that leave a loop": (
        "08_fused_tails/gn_min_bias", "        bool inside = channel < channels;\n",
        "        bool inside = channel < channels;\n        if (!inside) break;\n",
        [" of reduce.cuh, __shfl_xor_sync", "never comes", " of gn_min_bias", "normalised<LANES>(",
         "as by `break`"],
    ),
    "sum in the output": (
        "01_naive_gemm/gemm_naive", "sum += A", "C[row * N + col] += A",
        ["This line adds to what is there, and nobody has set that"],
    ),
    "one round": (
        "02_shared_memory_tiling/gemm_tiled", "k0 < K; k0", "k0 < BK; k0",
        ["only the first 32 of K = 65 count", "K = 32 passes"],
    ),
    "forgotten offset": (
        "02_shared_memory_tiling/gemm_tiled", "A[row * K + k0 + tx] :", "A[row * K + tx] :",
        ["K=33; K = 32 passes: what is different in the second block, tile or round along K?"],
    ),
    "tied minima": (
        "04_reductions/row_argmin", "less || (same && a.column < b.column)", "less",
        [", where x["],
    ),
    "warp function in a branch": (
        "04_reductions/sum_warp", f"sum = warp_sum({WARP_SUM});",
        "if (lane < WARPS) sum = warp_sum(sums[lane]);",
        ["called at", "Let them all come"],
    ),
    "share of the wrong lane": (
        "06_groupnorm/stats_welford", "share = b.count / count", "share = a.count / count",
        ["the share in merge is that of a, not of b"],
    ),
    "activation before GroupNorm": (
        "08_fused_tails/gn_leaky_relu_double", "v = normalised<LANES>(v, EPS);\n",
        "v = {activate(v.x), activate(v.y), activate(v.z), activate(v.w)};\n"
        "    v = normalised<LANES>(v, EPS);\n    if (inside) quad(&out[first]) = "
        "{v.x * w.x + b.x, v.y * w.y + b.y, v.z * w.z + b.z, v.w * w.w + b.w};\n    return;\n",
        ["leaky_relu and the doubling come before the normalising"],
    ),
    "column of the tile, not of the matrix": (
        "09_fused_linear/linear_bias_act", "load4(b, 1, N, 0, tile.col(j)", "load4(b, 1, N, 0, j",
        ["all columns from 4 on are wrong", "N = 4 passes"],
    ),
    "branch around a header's barrier": (
        "09_fused_linear/linear_gn_leaky_relu_double", "normalise(y, tile, size);",
        "if (tile.row(i) < M) normalise(y, tile, size);",
        ["23 | if (tile.row(i) < M) normalise", "linear_epilogue.cuh:", "| __syncthreads();"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("id", "right", "wrong", "words"), DRAFTS.values(), ids=[d.replace(" ", "-") for d in DRAFTS]
)
def test_a_report_lets_a_reader_name_the_fault(id, right, wrong, words):
    exercise = catalog.load(id)
    text = catalog.solution_text(exercise)
    assert right in text
    with pytest.raises(CheckFailed) as failure:
        check(compile_wrong(exercise, text.replace(right, wrong), "draft"), seed=1)
    assert [said for said in words if said not in str(failure.value)] == [], failure.value


def test_what_looked_wrong_without_consequences_is_told_beside_wrong_values():
    exercise = catalog.load("04_reductions/row_min")
    line = "        value = smaller(value, __shfl_xor_sync(0xffffffff, value, step));"
    half = line.replace("smaller", "if (threadIdx.x % 32 < 16) value = fminf", 1)
    half = half.replace("value = if", "if").replace("0xffffffff", "0x0000ffff")
    text = catalog.solution_text(exercise)
    assert line in text
    with pytest.raises(CheckFailed, match="remark: a shuffle from a lane that takes no part"):
        check(compile_wrong(exercise, text.replace(line, half), "half"), seed=1)
