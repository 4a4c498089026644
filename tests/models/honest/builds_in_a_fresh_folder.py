# passes
import tempfile

ext = load_inline(
    name="judged",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    functions=FUNCTIONS,
    build_directory=tempfile.mkdtemp(),
)


class ModelNew(Honest):
    pass
