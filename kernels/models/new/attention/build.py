def build():
    """The kernels, of which other cards than Hopper have none."""
    if not HOPPER:
        warnings.warn("no Hopper card alone is here: attention is PyTorch's", stacklevel=2)
        return None
    return load_inline(
        NAME,
        cpp_sources=[HOST],
        cuda_sources=[KERNELS],
        functions=["linear", "linear_backward", "attend", "attend_backward"],
        extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
        no_implicit_headers=True,
    )


kernels = build()
