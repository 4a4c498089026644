"""A compiled launcher is called like a Python function."""

import contextlib
from dataclasses import replace

import pytest
import torch

from utils.cuda import kernel as module
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.ground.errors import KernelCrash, KernelTimeout, LaunchError

AXPY = r"""
#include <cstdio>
__global__ void kernel(const float* x, float* y, float a, int n, bool loud) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
    if (i == 0 && loud) printf("n is %d\n", n);
}
void axpy(const float* x, float* y, float a, int n, bool loud, cudaStream_t stream) {
    kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, y, a, n, loud);
}
"""


@pytest.fixture(scope="module")
def axpy():
    return compile_cuda(AXPY, "axpy", backend="emulator", shapes={"x": "n", "y": "n"})


def test_outputs_are_written_in_place(axpy):
    x, y = torch.randn(1000), torch.randn(1000)
    expected = y + 2.5 * x
    assert axpy(x, y, 2.5, 1000, False) is None
    torch.testing.assert_close(y, expected)


@pytest.mark.parametrize(("here", "wanted"), [("cuda", None), ("cpu", "cpu")])
def test_where_tensors_stand_on_a_card_the_emulator_takes_them_from_there(
    axpy, monkeypatch, here, wanted
):
    """What a card has no instructions for runs on the emulator, also with a notebook's tensors."""
    plain, devices = module.check_arguments, []
    monkeypatch.setattr("utils.ground.settings.device", lambda: here)
    monkeypatch.setattr(
        module, "check_arguments", lambda *call: devices.append(call[-1]) or plain(*call)
    )
    y = torch.zeros(3)
    axpy(torch.ones(3), y, 2.0, 3, False)
    assert y.tolist() == [2, 2, 2] and devices[0] == wanted


def test_arguments_go_by_name_too(axpy):
    y = torch.zeros(3)
    axpy(torch.ones(3), y, loud=False, n=3, a=2)
    assert y.tolist() == [2, 2, 2]


def test_the_same_tensor_may_be_input_and_output(axpy):
    x = torch.arange(5.0)
    axpy(x, x, 1.0, 5, False)
    assert x.tolist() == [0, 2, 4, 6, 8]


def test_what_the_kernel_prints_is_printed(axpy, capsys):
    axpy(torch.ones(7), torch.ones(7), 1, 7, True)
    assert capsys.readouterr().out == "n is 7\n"


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((torch.ones(3), torch.ones(3), 1.0, 4, False), ValueError, "axpy: x has 3.*n = 4"),
        ((torch.ones(3), torch.ones(3).int(), 1.0, 3, False), TypeError, "axpy: y has dtype"),
        ((torch.ones(3), torch.ones(3), 1.0), TypeError, "axpy is missing n, loud"),
        ((torch.ones(3), torch.ones(3, requires_grad=True), 1, 3, 0), ValueError, "detach"),
        ((torch.ones(3), torch.ones(3), 1.0, 2**40, False), ValueError, "does not fit in int"),
    ],
)
def test_bad_arguments_never_reach_the_kernel(axpy, args, error, message):
    with pytest.raises(error, match=message):
        axpy(*args)


def test_zero_elements_are_an_empty_grid_with_cudas_own_name(axpy):
    with pytest.raises(LaunchError) as error:
        axpy(torch.ones(0), torch.ones(0), 1, 0, False)
    assert error.value.name == "cudaErrorInvalidValue"


def test_a_write_outside_is_an_error_and_nothing_is_copied_back():
    text = "__global__ void k(float* y, int n) { y[threadIdx.x] = 1; }\n"
    fill = compile_cuda(
        text + "void fill(float* y, int n) { k<<<1, n + 3>>>(y, n); }", "fill", backend="emulator"
    )
    y = torch.zeros(10)
    with pytest.raises(LaunchError, match="fill wrote outside of y: 3 elements.*offset 0.*end"):
        fill(y, 10)
    assert y.sum() == 0


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [
        ("double", torch.float64),
        ("int", torch.int32),
        ("unsigned", torch.uint32),
        ("long long", torch.int64),
        ("short", torch.int16),
        ("char", torch.int8),
        ("unsigned char", torch.uint8),
        ("bool", torch.bool),
    ],
)
def test_every_type_arrives_as_it_was_sent(ctype, dtype):
    source = f"""__global__ void k(const {ctype}* x, {ctype}* y, int n) {{
    for (int i = 0; i < n; i++) y[i] = x[i];
}}
void copy(const {ctype}* x, {ctype}* y, int n) {{ k<<<1, 1>>>(x, y, n); }}"""
    copy = compile_cuda(source, "copy", backend="emulator")
    x = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    y = torch.zeros(5).to(dtype)
    copy(x, y, 5)
    assert y.tolist() == x.tolist()


def test_values_arrive_as_they_were_sent():
    source = """void values(double* out, int a, unsigned b, long long c, size_t d, float e,
                            double f, bool g) {
    double v[] = {(double)a, (double)b, (double)c, (double)(d >> 11), e, f, (double)g};
    for (int i = 0; i < 7; i++) out[i] = v[i];
}"""
    values = compile_cuda(source, "values", backend="emulator")
    out = torch.zeros(7, dtype=torch.float64)
    values(out, -5, 2**32 - 1, -(2**40), 2**64 - 1, 0.25, 1e300, True)
    assert out.tolist() == [-5, 2**32 - 1, -(2**40), 2**53 - 1, 0.25, 1e300, 1]


def test_it_says_what_it_takes(axpy):
    assert repr(axpy) == (
        "<axpy(const float* x, float* y, float a, int n, bool loud, cudaStream_t stream) "
        "for emulator>"
    )


# --- on a GPU

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module", params=["with a stream", "without a stream"])
def on_gpu(request):
    text = AXPY if request.param == "with a stream" else AXPY.replace(", cudaStream_t stream", "")
    text = text if "cudaStream_t" in text else text.replace(", 0, stream", "")
    return compile_cuda(text, "axpy", backend="cuda")


@gpu
@pytest.mark.parametrize("trusted", [False, True])
def test_a_call_on_the_gpu_is_ordered_with_pytorchs_current_stream(on_gpu, trusted):
    on_gpu.trusted = trusted
    n = 1 << 24
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x, y = torch.randn(n, device="cuda"), torch.zeros(n, device="cuda")
            for _ in range(10):
                x = x * 1.0
            on_gpu(x, y, 1.0, n, False)
            result = y * 2
        stream.synchronize()
        assert torch.equal(result, 2 * x)


@gpu
def test_a_trusted_launch_that_cuda_refuses_is_an_error(on_gpu):
    on_gpu.trusted = True
    empty = torch.ones(0, device="cuda")
    with pytest.raises(LaunchError) as error:
        on_gpu(empty, empty, 1.0, 0, False)
    assert error.value.name == "cudaErrorInvalidValue"
    y = torch.zeros(3, device="cuda")
    on_gpu(torch.ones(3, device="cuda"), y, 1.0, 3, False)
    assert y.tolist() == [1, 1, 1]


@gpu
def test_a_fault_on_the_gpu_leaves_the_notebooks_context_alone(on_gpu):
    text = "__global__ void k(float* y) { y[1ll << 40] = 1; }\n"
    wild = compile_cuda(text + "void wild(float* y) { k<<<1, 1>>>(y); }", "wild", backend="cuda")
    y = torch.zeros(3, device="cuda")
    with pytest.raises(LaunchError) as error:
        wild(y)
    assert error.value.name == "cudaErrorIllegalAddress"
    on_gpu.trusted = False
    on_gpu(torch.ones(3, device="cuda"), y, 1.0, 3, False)
    assert y.tolist() == [1, 1, 1]


@gpu
def test_a_kernel_that_never_ends_on_the_gpu_is_stopped():
    text = "__global__ void k(volatile float* y) { while (y[0] == 0) { } }\n"
    hang = compile_cuda(text + "void hang(float* y) { k<<<1, 1>>>(y); }", "hang", backend="cuda")
    from utils.ground.errors import KernelTimeout

    with pytest.raises(KernelTimeout):
        hang.isolated({"y": torch.zeros(1)}, timeout=1.0)


def test_a_trusted_launcher_is_called_apart_where_a_tensor_is_empty(axpy, monkeypatch):
    def crash(*_):
        raise KernelCrash("integer division by zero")

    kernel, here = replace(axpy, backend="cuda", trusted=True), []
    monkeypatch.setattr(
        "utils.cuda.kernel.check_arguments", lambda _, __, arguments, *___: arguments
    )
    monkeypatch.setattr(Kernel, "_launch", lambda _, arguments: here.append(arguments["n"]))
    monkeypatch.setattr(Kernel, "_run_apart", crash)
    kernel(torch.ones(3), torch.ones(3), 1.0, 3, False)
    with pytest.raises(KernelCrash):
        kernel(torch.ones(0), torch.ones(0), 1.0, 0, False)
    assert here == [3]


@pytest.mark.parametrize("stream", [0, 7])  # CUDA's default stream, and another
@pytest.mark.parametrize("takes_stream", [True, False])
def test_a_launch_is_ordered_with_pytorchs_stream(axpy, monkeypatch, stream, takes_stream):
    """Without a card: what is passed to the launcher, and which stream waits for which."""
    done = []

    class Stream:
        def __init__(self, handle):
            self.cuda_stream = handle

        def wait_stream(self, other):
            done.append((self.cuda_stream, other.cuda_stream))

    class Library:
        def workbook_run(self, slots):
            done.append(kernel._slots.unpack(slots))
            return 0

    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: Stream(stream))
    monkeypatch.setattr(torch.cuda, "default_stream", lambda *_: Stream(0))
    kernel = replace(axpy, parameters=axpy.parameters[: 6 if takes_stream else 5])
    kernel._entry = Library()
    x, y = torch.ones(3), torch.ones(3)
    kernel._launch(kernel.checked((x, y), {"loud": True, "n": 3, "a": 0.5}))
    arguments = (x.data_ptr(), y.data_ptr(), 0.5, 3, True)
    if takes_stream:
        assert done == [(*arguments, stream)]
    else:
        assert done == ([(0, 7), arguments, (7, 0)] if stream else [arguments])


ENDLESS = """
__global__ void spin_kernel(float* x) {
    for (int i = 0; i >= 0; i = (i + 1) % 1000) x[0] = i;
}
void spin(float* x) { spin_kernel<<<1, 1>>>(x); }
"""


def test_a_call_that_does_not_end_says_so_before_it_is_stopped(monkeypatch, capsys):
    monkeypatch.setattr(module, "SILENT", 0.3)
    monkeypatch.setattr(module, "CALL_TIMEOUT", 1.5)
    monkeypatch.setattr(module, "in_notebook", lambda: True)
    spin = compile_cuda(ENDLESS, "spin", backend="emulator")
    with pytest.raises(KernelTimeout):
        spin(torch.zeros(1))
    said = capsys.readouterr().out
    assert said.startswith("spin has not ended after 0.3 s, and is stopped after 1.5 s;")
    assert "Is there a loop that never ends?" in said


def test_a_call_that_ends_in_time_says_nothing(axpy, monkeypatch, capsys):
    monkeypatch.setattr(module, "in_notebook", lambda: True)
    axpy(torch.ones(3), torch.ones(3), 1.0, 3, False)
    assert capsys.readouterr().out == ""
