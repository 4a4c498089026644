"""Machine code by source line, as nvcc makes it and nvdisasm shows it."""

import pytest

from utils.course import catalog
from utils.cuda import toolchain
from utils.timing import sass

FACTOR = """// x: (n), out: (n)
__device__ float scaled(float v) {
    return 3.0f * v;
}
template <int TIMES> __global__ void factor_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = TIMES * scaled(x[i]);
}
void factor(const float* x, float* out, int n) {
    factor_kernel<5><<<(n + 255) / 256, 256>>>(x, out, n);
    factor_kernel<7><<<(n + 255) / 256, 256>>>(x, out, n);
}
"""
SHOWN = """
//--------------------- .text._Z5otherPf --------------------------
.text._Z5otherPf:
\t//## File "/tmp/a/kernel.cu", line 6
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/usr/include/b.hpp", line 449 inlined at "/tmp/a/kernel.cu", line 8
\t//## File "/tmp/a/kernel.cu", line 8
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR8][R8.64] ;
.L_x_1:
        /*0020*/                   EXIT ;
\t//## File "/usr/include/b.hpp", line 12
        /*0030*/               @P1 BRA `(.L_x_1) ;
"""


def test_what_nvdisasm_shows_is_read():
    (code,) = sass.listing(SHOWN).values()
    assert [(i.offset, i.opcode, i.line) for i in code] == [
        *((0, "LDC", 6), (16, "LDG", 8), (32, "EXIT", 8), (48, "BRA", 0)),
    ]
    assert code[1].text == "@!P0 LDG.E.128 R4, desc[UR8][R8.64]"


@pytest.fixture(scope="module")
def code():
    if not sass.compiled(FACTOR, "sm_90"):
        pytest.skip("there is no nvcc here")
    if not toolchain.nvdisasm():
        pytest.skip("there is no nvdisasm here")
    return sass.disassembled(FACTOR, "sm_90")


@pytest.mark.nvcc
def test_each_template_argument_has_code_of_its_own(code):
    assert set(code) == set(sass.compiled(FACTOR, "sm_90")) and len(code) == 2
    assert sum("ILi5E" in kernel for kernel in code) == 1


@pytest.mark.nvcc
def test_instructions_are_at_the_line_that_calls_for_them(code):
    for instructions in code.values():
        lines = {i.opcode: i.line for i in instructions}
        # The product of the inlined function is the line's that calls it.
        assert (lines["LDG"], lines["STG"], lines["FMUL"]) == (8, 8, 8)
        assert lines["S2R"] == 6


@pytest.mark.nvcc
def test_what_does_not_fit_into_registers_is_counted():
    text = catalog.solution_text(catalog.load("03_register_tiles/gemm_warp"))
    few = text.replace("__launch_bounds__(THREADS, 1)", "__launch_bounds__(THREADS, 8)")
    if not (usual := sass.compiled(text, "sm_90")):
        pytest.skip("there is no nvcc here")
    assert few != text
    (kernel,) = usual
    assert usual[kernel].spilled == 0 and usual[kernel].registers > 64  # its sums alone
    assert usual[kernel].stack == 0
    assert sass.compiled(few, "sm_90")[kernel].spilled > 0


@pytest.mark.nvcc
def test_an_array_that_is_not_in_registers_is_counted():
    text = (
        "__global__ void k(float* x, int n) {\n    float a[100];\n"
        "    for (int i = 0; i < 100; i++) a[i] = x[i];\n    x[0] = a[n];\n}\n"
    )
    if not (used := sass.compiled(text, "sm_90")):
        pytest.skip("there is no nvcc here")
    (kernel,) = used.values()
    assert (kernel.stack, kernel.spilled) == (400, 0)


def test_without_nvcc_nothing_is_known(monkeypatch):
    def missing():
        raise toolchain.ToolError("there is no nvcc")

    monkeypatch.setattr(toolchain, "cuda_home", missing)
    assert sass.compiled("// no nvcc", "sm_90") == {} == sass.disassembled("// no nvcc", "sm_90")
