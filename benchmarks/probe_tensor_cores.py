"""How tensor cores round, asked of the GPU of this machine: operands and the bits of what it says.

    python3 benchmarks/probe_tensor_cores.py FOLDER

Writes FOLDER/<instruction>.npz, of each case a (m, k), b (n, k), c and d (m, n) as bits: float16,
bfloat16 or float32 where the type is tf32. Needs nvcc, NumPy and an sm_90a; takes half a minute.
tests/calibration/tensor_cores.npz keeps a part of it, by --keep.
"""

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TYPES = ("f16", "bf16", "tf32")


# --- Numbers, as doubles that the type holds (tf32: or not, where low bits are asked for) --------


def to_bits(values: np.ndarray, type_: str) -> np.ndarray:
    if type_ == "f16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    if type_ == "bf16":
        return (bits >> 16).astype(np.uint16)  # cut
    return bits


def significand(rng: np.random.Generator, shape: tuple, type_: str) -> np.ndarray:
    """In [1, 2), with as many bits as the type has; of tf32 half the cases have all of fp32's."""
    bits = {"f16": 10, "bf16": 7, "tf32": 10}[type_]
    if type_ == "tf32" and rng.random() < 0.5:
        bits = 23
    return 1 + rng.integers(0, 2**bits, shape) / 2.0**bits


def sign(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return rng.choice([-1.0, 1.0], shape)


def spread(rng: np.random.Generator, shape: tuple, type_: str, reach: float) -> np.ndarray:
    exponent = np.round(rng.uniform(-reach, reach, shape))
    return sign(rng, shape) * significand(rng, shape, type_) * 2.0**exponent


# --- Kinds of cases: (a, b, c) of one ------------------------------------------------------------


def normal(rng, m, n, k, type_):
    return rng.normal(size=(m, k)), rng.normal(size=(n, k)), rng.normal(size=(m, n))


def wide(rng, m, n, k, type_):
    reach = rng.choice([2, 5, 12])
    return (
        spread(rng, (m, k), type_, reach),
        spread(rng, (n, k), type_, reach),
        spread(rng, (m, n), "tf32", 2 * reach),
    )


def cancelling(rng, m, n, k, type_):
    a, b, _ = wide(rng, m, n, k, type_)
    c = -(a @ b.T)
    c[:, ::2] *= 1 + rng.choice([0, 2.0**-23, 2.0**-12], (m, (n + 1) // 2))
    return a, b, c


def one_huge(rng, m, n, k, type_):
    """One product of 2^12 or so, all others below it by t bits; t is the row's."""
    t = rng.integers(10, 27, (m, 1))
    a = spread(rng, (m, k), type_, 0) * 2.0 ** (12 - t)
    where = rng.integers(0, k, m)
    a[np.arange(m), where] = sign(rng, m) * significand(rng, m, type_) * 2.0**12
    b = sign(rng, (n, k)) * 2.0 ** rng.integers(-1, 2, (n, 1))
    c = np.where(rng.random((m, n)) < 0.5, 0, spread(rng, (m, n), "tf32", 14))
    return a, b, c


def straddling(rng, m, n, k, type_):
    """One or two products of 1, few of 2^-t (3 bits long), else zeros; c is 0 or one of those."""
    t = rng.integers(17, 29, m)
    a = np.zeros((m, k))
    for i in range(m):
        places = rng.permutation(k)
        few = rng.integers(1, k - 1)
        a[i, places[:few]] = rng.choice([1, 1.25, 1.5, 1.75], few) * 2.0 ** (14 - t[i])
        if rng.random() < 0.5:
            a[i, places[:few]] *= rng.choice([-1, 1], few)
        for place in places[few : few + rng.integers(0, 3)]:
            a[i, place] = rng.choice([-1, 1]) * 2.0**14
    b = np.repeat(rng.choice([-1, 1], (n, 1)), k, 1) * 1.0
    some = 2.0 ** (14 - t[:, None]) * rng.choice([0.25, 0.5, 1, 1.5], (m, n))
    c = np.choose(rng.integers(0, 4, (m, n)), [np.zeros((m, n)), some, -some, 2.0**14 + 0 * some])
    return a, b, c * rng.choice([-1, 1], (m, n))


def groups(rng, m, n, k, type_):
    """L and -L, and x that L swallows: who is summed with whom first?"""
    a = np.zeros((m, k))
    for i in range(m):
        p, q, r = rng.permutation(k)[:3]
        a[i, [p, q]] = 2.0**14, -(2.0**14)
        a[i, r] = significand(rng, (1,), type_)[0] * 2.0 ** rng.integers(-14, -9)
    b = np.ones((n, k))
    b[::2, :] = sign(rng, (b[::2].shape[0], 1))
    c = np.choose(rng.integers(0, 4, (m, n)), [0, 2.0**-14, 2.0**14, -(2.0**14)]) * 1.0
    return a, b, c


def large_sum(rng, m, n, k, type_):
    """c above all products, by each number of bits."""
    a, b = spread(rng, (m, k), type_, 1), spread(rng, (n, k), type_, 1)
    return a, b, spread(rng, (m, n), "tf32", 0) * 2.0 ** rng.integers(0, 32, (m, n))


def tiny(rng, m, n, k, type_):
    """Subnormal operands, products and sums."""
    low = {"f16": -20, "bf16": -72, "tf32": -72}[type_]
    a = spread(rng, (m, k), type_, 5) * 2.0**low
    b = spread(rng, (n, k), type_, 5) * (1 if type_ == "f16" else 2.0**low)
    if rng.random() < 0.4:  # operands that are subnormal themselves
        a = spread(rng, (m, k), type_, 5) * 2.0 ** {"f16": -20, "bf16": -130, "tf32": -130}[type_]
        b = spread(rng, (n, k), type_, 5)
    c = spread(rng, (m, n), "tf32", 8) * 2.0 ** (low if type_ == "f16" else 2 * low)
    return a, b, np.where(rng.random((m, n)) < 0.4, 0, c)


def huge(rng, m, n, k, type_):
    """Around the largest float."""
    high = {"f16": 14, "bf16": 62, "tf32": 62}[type_]
    a, b = spread(rng, (m, k), type_, 1) * 2.0**high, spread(rng, (n, k), type_, 1) * 2.0**high
    c = spread(rng, (m, n), "tf32", 3) * 2.0**123
    return a, b, np.clip(np.where(rng.random((m, n)) < 0.3, 0, c), -3.4e38, 3.4e38)


def special(rng, m, n, k, type_):
    """Infinities, NaNs, zeros of both signs."""

    def some(shape, share, values):
        kept = rng.normal(size=shape)
        return np.where(rng.random(shape) < share, rng.choice(values, shape), kept)

    zeros = rng.random() < 0.4
    odd = [0.0, -0.0] if zeros else [np.inf, -np.inf, np.nan, 0.0, -0.0]
    a, b = (some((x, k), 1.0 if zeros else 0.04, odd) for x in (m, n))
    return a, b, some((m, n), 0.9 if zeros else 0.1, odd)


KINDS = (normal, wide, cancelling, one_huge, straddling, groups, large_sum, tiny, huge, special)


def cases(type_: str, m: int, n: int, k: int, count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made: dict[str, list] = {"a": [], "b": [], "c": []}
    for i in range(count):
        a, b, c = KINDS[i % len(KINDS)](rng, m, n, k, type_)
        with np.errstate(over="ignore"):
            made["a"].append(to_bits(a, type_))
            made["b"].append(to_bits(b, type_))
            made["c"].append(np.asarray(c, np.float32).view(np.uint32))
    return {name: np.stack(arrays) for name, arrays in made.items()}


# --- The card ------------------------------------------------------------------------------------


def build(folder: str) -> ctypes.CDLL:
    library = f"{folder}/probe.so"
    command = ["nvcc", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-shared"]
    command += ["-Xcompiler", "-fPIC", "-o", library, str(HERE / "probe_tensor_cores.cu")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(library)


def ask(function, arguments: tuple, operands: dict[str, np.ndarray]) -> np.ndarray:
    result = np.full_like(operands["c"], 0xDEADBEEF)
    arrays = [np.ascontiguousarray(operands[name]) for name in "abc"] + [result]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    error = function(*arguments, *pointers)
    if error:
        raise RuntimeError(f"cudaError {error}")
    return result


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        library = build(temporary)
    for number, type_ in enumerate(TYPES):
        step = 8 if type_ == "tf32" else 16
        operands = cases(type_, 16, 8, step, 500, number)
        operands["d"] = ask(library.probe_mma, (number, 500), operands)
        np.savez_compressed(folder / f"mma_{type_}.npz", **operands)
        kept = {}
        for steps, add, count in ((1, 1, 20), (1, 0, 10), (2, 1, 10)):
            operands = cases(type_, 64, 64, step * steps, count, 10 * number + 2 * steps + add)
            operands["d"] = ask(library.probe_wgmma, (number, count, steps, add), operands)
            kept |= {f"{name}_{steps}_{add}": array for name, array in operands.items()}
        np.savez_compressed(folder / f"wgmma_{type_}.npz", **kept)
        for path in (folder / f"mma_{type_}.npz", folder / f"wgmma_{type_}.npz"):
            print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def keep(folder: Path, path: Path) -> None:
    """A part of what is in the folder: 20 cases of mma, of wgmma 8 rows and 12 columns of each."""
    kept = {}
    for type_ in TYPES:
        for name, array in np.load(folder / f"mma_{type_}.npz").items():
            kept[f"mma_{type_}_{name}"] = array[:20]
        for name, array in np.load(folder / f"wgmma_{type_}.npz").items():
            rows = array[:, :12] if name[0] == "b" else array[:, :8]
            kept[f"wgmma_{type_}_{name}"] = rows[:, :, :12] if name[0] in "cd" else rows
    np.savez_compressed(path, **kept)


if __name__ == "__main__":
    if "--keep" in sys.argv:
        keep(Path(sys.argv[1]), HERE.parent / "tests/calibration/tensor_cores.npz")
    else:
        main(Path(sys.argv[1]))
