"""A command line as nvcc takes it, in the words of `workbook emulate`."""

from collections.abc import Sequence

# Of no meaning on a CPU: with a value behind them, or in one word.
_IGNORED_PAIRS = """-arch -gencode -ccbin -o -Xptxas -Xlinker -t -code --gpu-architecture
    --generate-code --threads -maxrregcount -Xcicc""".split()
_IGNORED = """-G -g -w -lineinfo -dc -use_fast_math --use_fast_math -m64 -restrict -cudart -rdc
    --expt-relaxed-constexpr --expt-extended-lambda --extended-lambda -expt-relaxed-constexpr
    -extended-lambda --ptxas-options --relocatable-device-code --default-stream
    -Wno-deprecated-gpu-targets""".split()
_LIBRARIES = ("-lcudart", "-lcuda", "-lcudadevrt", "-lcudart_static")  # the emulator is these


def translated(arguments: Sequence[str]) -> list[str]:
    """The same arguments with nvcc's spelling of options replaced, and without what it ignores."""
    result: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("-Xcompiler", "--compiler-options"):
            value = value if equals else rest.pop(0) if rest else ""
            result += [f"--flag={flag}" for flag in value.split(",") if flag]
        elif name == "-std":
            result += ["--std", value if equals else rest.pop(0) if rest else ""]
        elif name in _IGNORED_PAIRS:
            if not equals and rest:
                rest.pop(0)
        elif name in _IGNORED or word in _LIBRARIES:
            continue
        elif word.startswith(("-l", "-L", "-fopenmp")) and not word.startswith("--"):
            result.append(f"--flag={word}")
        else:
            result.append(word)
    return result
