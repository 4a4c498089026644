"""A compiler's message keeps the author's lines and loses the emulator's."""

from utils.emulator.build import include_dir
from utils.emulator.messages import readable


def test_an_error_of_the_author_stands_alone(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("first\n  k<<<1, 2>>>(x);\n")
    message = f"""\
In file included from {include_dir()}/cuda_runtime.h:9,
                 from main.cpp:1:
{source}: In instantiation of ‘main()::<lambda(auto:1&& ...)>’:
/usr/include/c++/12/tuple:1836:31:   required from ‘constexpr const bool std::x’
{include_dir()}/emulator/launch.h:16:   required from ‘void emu::launch()’
{source}:2:   required from here
{source}:2: error: too few arguments
"""
    assert readable(message) == f"{source}:2: error: too few arguments\n    k<<<1, 2>>>(x);"


def test_an_error_in_a_header_is_followed_by_the_authors_lines(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("first\nsecond\n")
    message = f"""\
{include_dir()}/emulator/warp.h:16:   required from ‘void f()’
{source}:1:   required from ‘void g()’
{source}:2:   required from here
{include_dir()}/emulator/warp.h:12: error: no
{source}:1: note: declared here
absent.cu:7: error: other
"""
    assert readable(message).splitlines() == [
        "emulator/warp.h:12: error: no",
        f"{source}:1: note: by way of this line",
        "    first",
        f"{source}:2: note: by way of this line",
        "    second",
        f"{source}:1: note: declared here",
        "    first",
        "absent.cu:7: error: other",
    ]
