"""What g++ says of a rewritten text, cut down to what its author can use."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from utils.emulator.build import include_dir

# Columns and carets would point into the rewritten line; `readable` shows the author's own.
FLAGS = ["-fno-show-column", "-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]

_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? +(?P<rest>.*)")
_INCLUDED = re.compile(r"(?:In file included )?from |.*: In (?:instantiation|substitution) of ")
_REQUIRED = re.compile(r"(?:recursively )?required (?:from|by)|\[ skipping")


def readable(message: str) -> str:
    """A compiler's message without the way through templates that are not the author's.

    An error is followed by the author's lines that led there, and each of the author's lines by
    its text, where the file can be read.
    """
    return "\n".join(_readable(message.splitlines()))


# A name of CUDA graphs, or of the capture of a stream.
GRAPHS = r"cudaGraph(?!ics)\w*|cuda\w*StreamCapture\w*|cudaStream(Begin|End|Is|Get)Captur\w*"
# What a program may ask for in vain: a name or a header, as in g++'s complaint about it.
_MISSING = {
    "CUDA graphs": GRAPHS,
    "graphics": r"(GL|EGL|vulkan|X11)/.*|cuda_(gl|egl|vdpau|d3d\d+)_interop\.h|cudaGraphics\w*"
    r"|cudaGL\w*|cudaEGL\.h|d3d\d+\.h",
    "memory shared between processes": r"cudaIpc\w*|cudaMemPool(Ex|Im)port\w*",
    "CUB beyond sums and scans of blocks and warps": r"cub(/.*)?|Device[A-Z]\w*|DoubleBuffer"
    r"|(Block|Warp|Thread)(Load|Store|Exchange|RadixSort|RadixRank|MergeSort|Histogram|Shuffle"
    r"|Discontinuity|AdjacentDifference|RunLengthDecode)\w*",
    "Thrust": r"thrust(/.*)?",
    "cuRAND": r"curand\w*(\.h)?",
    "cuBLAS": r"cublas\w*(\.h)?",
    "cuFFT": r"cufft\w*(\.h)?",
    "cuSPARSE": r"cusparse\w*(\.h)?",
    "cuSOLVER": r"cusolver\w*(\.h)?",
    "cuDNN": r"cudnn\w*(\.h)?",
    "NCCL": r"nccl\w*(\.h)?",
    "NPP": r"npp\w*(\.h)?|nv/npp.*",
    "nvJPEG": r"nvjpeg\w*(\.h)?",
    "NVML": r"nvml\w*(\.h)?",
    "CUTLASS": r"(cutlass|cute)(/.*)?",
    "compilation at run time (NVRTC)": r"nvrtc\w*(\.h)?",
    "8-bit floats": r"cuda_fp[468]\.h|__nv_fp[468]\w*",
    "mipmapped arrays": r"cuda\w*[mM]ipmap\w*",
    "texture references": r"texture|cudaBindTexture\w*|cudaUnbindTexture",
    "libcu++ beyond barriers and pipelines": r"cuda/.*|nv/target",
    "driver API": r"cu(Init|Module|Launch|Ctx|Device|Mem|Func|Link|Stream|Event|Tex|Array|Library"
    r"|Kernel|Driver|Get|Param|Occupancy)\w*|CU[a-z]\w*|CU_\w+|CUDA_SUCCESS",
    "texture gathers and gradients": r"tex2Dgather|tex\dD\w*Grad|texCubemapLayered\w*",
    "functions of this name": r"cuda[A-Z]\w*|__[a-z]\w*",
}
_UNKNOWN = re.compile(
    r"['‘](?:\w+::)*(?P<name>\w+)(?:::\w+)*['’] "
    r"(?:was not|has not been|does not name|is not a member)"
    r"|fatal error: (?P<header>[^:]+): No such file"
)
_UNLINKED = re.compile(
    r"(?:\S*ld: )?(?:\S+\.o: in function .*)?(?P<file>[^\s:]+):(?P<line>\d+): "
    r"undefined reference to .(?P<name>\w+)"
)


def missing(message: str) -> str | None:
    """What the emulator lacks, in a line, where g++ complains of a program for that."""
    for text in message.splitlines():
        if unlinked := _UNLINKED.match(text):
            return _lacks(unlinked["name"], unlinked["file"], unlinked["line"], "calls")
        match = _PLACE.match(text)
        if not match or "rror:" not in match["rest"]:
            continue
        file, number, rest = match.groups()
        if rest.startswith("Error:") or ("asm" in rest and "constraint" in rest):
            return f"the emulator has no inline PTX: {file}:{number} uses asm"
        if not (unknown := _UNKNOWN.search(rest)):
            return None
        name = unknown["name"] or unknown["header"] or ""
        verb = "includes" if unknown["header"] else "uses"
        if lacking := _lacks(name, file, number, verb) if _is_own(file) else None:
            return lacking
        if unknown["header"]:
            return f"{file}:{number} includes {name}, which is in none of the folders given by -I"
        return None
    return None


def _lacks(name: str, file: str, line: str, verb: str) -> str | None:
    for feature, names in _MISSING.items():
        if re.fullmatch(names, name):
            return f"the emulator has no {feature}: {file}:{line} {verb} {name}"
    return None


def _readable(lines: Iterable[str]) -> Iterator[str]:
    trail: list[tuple[str, str]] = []
    shown: set[tuple[str, str]] = set()
    for line in lines:
        match = _PLACE.match(line)
        if _INCLUDED.match(line.strip()) or (not match and "required from" in line):
            continue
        if not match:
            yield line
            continue
        file, number, rest = match.groups()
        if _REQUIRED.match(rest):
            trail.append((file, number))
            continue
        if "error:" in rest:
            shown = set()
        if (file, number) in shown and "in expansion of macro" in rest:
            continue
        yield from _lines(file, number, rest)
        shown.add((file, number))
        for place in trail if "error:" in rest else []:
            if place not in shown and _is_own(place[0]):
                yield from _lines(*place, "note: by way of this line")
                shown.add(place)
        trail = []


def _is_own(file: str) -> bool:
    return not file.startswith(("/usr/", str(include_dir()), "<"))


def _lines(file: str, number: str, rest: str) -> Iterator[str]:
    """What is said of a line, and the author's line itself."""
    yield f"{file.removeprefix(f'{include_dir()}/')}:{number}: {rest}"
    if _is_own(file) and Path(file).is_file():
        lines = Path(file).read_text(errors="replace").splitlines()
        yield from (f"    {line.strip()}" for line in lines[int(number) - 1 : int(number)])
