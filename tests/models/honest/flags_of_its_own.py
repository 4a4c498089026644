# passes
"""A macro on the command line, beside flags that say nothing on the emulator."""

ext = load_inline(
    name="flagged",
    cpp_sources=CPP,
    cuda_sources=CUDA.replace("1e-5f", "EPSILON"),
    functions=FUNCTIONS,
    extra_cflags=["-O3", "-std=c++17"],
    extra_cuda_cflags=["-DEPSILON=1e-5f", "-O3", "--use_fast_math", "-gencode", "arch=compute_80,code=compute_80"],
    extra_ldflags=["-lcudart"],
)


class ModelNew(Honest):
    pass
