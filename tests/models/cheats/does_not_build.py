# rejected: does not build
broken = load_inline(
    name="broken",
    cpp_sources="",
    cuda_sources="__global__ void k(float* x) { system(0); }",
    functions=[],
)
