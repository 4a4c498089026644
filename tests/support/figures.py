"""Stored figures of a kernel, as a measurement would leave them."""

from utils.course.precision import Precision
from utils.timing.rows import Entry, Row

FP32 = Precision.FP32
STAMP = {"driver": "580", "cuda": "13.0", "torch": "2.11.0", "date": "2026-11-20", "commit": "abc"}


def entry(median: float = 2.0, **fields) -> Entry:
    """A product of 64 × 64 that took `median` ms; `fields` replace the others."""
    rows = (
        Row("gemm_naive", "ours", median, median * 0.9, median * 1.1, precision=FP32),
        Row("torch.compile", "compile", 1.5, 1.4, 1.6, precision=FP32),
        Row("cuBLAS", "library", 1.0, 0.9, 1.1, precision=FP32),
    )
    sizes = {"M": 64, "N": 64, "K": 64}
    everything = {"sizes": sizes, "bytes": 49152, "flops": 524288, "rows": rows, **STAMP, **fields}
    return Entry(**everything)
