def build():
    """The kernels, for the cards that are there."""
    if not CARDS:
        raise RuntimeError(f"{NAME} needs a CUDA card, and PyTorch sees none")
    names = [f"{a}{b}{'a' if HOPPER else ''}" for a, b in CARDS]
    functions = ["arguments", "tail_arguments", "tail", "tail_backward", "column_sums"]
    functions += ["whole", "infer", "products", "unobserved"] if HOPPER else []
    return load_inline(
        NAME,
        cpp_sources=[HOST, HOST_HOPPER] if HOPPER else [HOST],
        cuda_sources=[KERNELS, KERNELS_HOPPER] if HOPPER else [KERNELS],
        functions=functions,
        extra_cuda_cflags=[f"-gencode=arch=compute_{name},code=sm_{name}" for name in names],
        no_implicit_headers=True,
    )


kernels = build()
