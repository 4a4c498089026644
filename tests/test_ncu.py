"""Nsight Compute's source page, read and added up by line."""

import pytest

from utils.timing import ncu, sass

PAGE = """==PROF== Connected to process 7 (/tmp/program)
"Kernel Name","void a::kernel<(int)2, b<c>>(const float *, int) (8, 1, 1)x(32, 1, 1)"
"#","Address","Source","# Samples","Instructions Executed","L2 Theoretical Sectors Global"
"1","140","      @!P0 LDG.E R1, desc[UR4][R2.64]","12","1,024","4096"
"2","150","      LDG.E R3, desc[UR4][R4.64]","","1,024","4096"
"3","160","      EXIT","1","1,024","0"
"Kernel Name","second_kernel(int)"
"#","Address","Source","# Samples","Instructions Executed","L2 Theoretical Sectors Global"
"1","140","      EXIT","","7",""
"""


def code(*opcodes):
    return tuple(
        sass.Instruction(16 * i, f"{name}.E R1 ", 8 + (name == "EXIT"))
        for i, name in enumerate(opcodes)
    )


LISTING = {
    "_Z6kernelILi1EEvPKfi": code("LDG", "EXIT", "NOP"),
    "_Z6kernelILi2EEvPKfi": code("LDG", "LDG", "EXIT", "NOP"),
    "_Z13second_kerneli": code("EXIT"),
}


def test_counts_are_added_up_by_line_and_opcode():
    first, second = ncu.launches(PAGE)
    assert (first.kernel, second.kernel) == ("kernel", "second_kernel")
    assert ncu.by_line(first, LISTING) == {
        "8": {"LDG": {"instructions": 2048, "global_sectors": 8192, "samples": 12}},
        "9": {"EXIT": {"instructions": 1024, "samples": 1}},
    }
    assert ncu.by_line(second, LISTING) == {"9": {"EXIT": {"instructions": 7}}}


def test_other_code_is_not_taken_for_the_cards():
    first, _ = ncu.launches(PAGE)
    with pytest.raises(ValueError, match="has the 3 instructions of kernel"):
        ncu.by_line(first, {k: v for k, v in LISTING.items() if "Li2E" not in k})
    assert ncu.launches("==ERROR== no permission") == []
