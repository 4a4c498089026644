"""Arguments that a launcher cannot take are refused by name, with what to do."""

import numpy as np
import pytest
import torch

from utils.cuda.arguments import check_arguments, match
from utils.cuda.signature import parse_launcher

PARAMETERS = parse_launcher(
    "void f(const float* A, float* out, int M, size_t N, float eps, bool flag, cudaStream_t s);",
    "f",
)
SHAPES = {"A": "M N", "out": "M"}


def good(**changes):
    arguments = {
        "A": torch.ones(3, 4),
        "out": torch.ones(3),
        "M": 3,
        "N": 4,
        "eps": 0.5,
        "flag": True,
    }
    return {**arguments, **changes}


def check(device="cpu", shapes=SHAPES, **changes):
    return check_arguments("f", PARAMETERS, good(**changes), shapes, device)


def test_good_arguments_pass_as_plain_numbers():
    checked = check(M=np.int64(3), N=torch.tensor(4), eps=np.float32(0.5), flag=1)
    assert [type(v) for v in checked.values()] == [torch.Tensor] * 2 + [int, int, float, bool]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"A": [1.0]}, TypeError, "f: A is of type list, but const float[*] takes a torch.Tensor"),
        ({"A": np.ones(3)}, TypeError, "f: A is of type ndarray"),
        (
            {"A": torch.ones(3, 4).double()},
            TypeError,
            r"A has dtype torch.float64.*to\(torch.float32",
        ),
        ({"A": torch.ones(4, 3).T}, ValueError, r"A is not contiguous; pass A.contiguous\(\)"),
        ({"A": torch.ones(3, 4).to_sparse()}, ValueError, "A is not contiguous"),
        ({"A": torch.ones(3, 4, device="meta")}, ValueError, "A is on 'meta'.*'cpu'"),
        ({"out": torch.ones(3, requires_grad=True)}, ValueError, r"out requires.*out.detach\(\)"),
        ({"M": 2**31}, ValueError, "M is 2147483648, which does not fit in int"),
        ({"M": -(2**31) - 1}, ValueError, "does not fit in int"),
        ({"N": -1}, ValueError, "N is -1, which does not fit in size_t"),
        ({"M": 3.0}, TypeError, "M is of type float, but int takes an integer"),
        ({"M": torch.ones(3)}, TypeError, "M is a torch.Tensor, but int takes an integer"),
        ({"eps": "1"}, TypeError, "eps is of type str, but float takes a number"),
        ({"eps": 1e39}, ValueError, "eps is 1e[+]39, which does not fit in a float"),
        ({"A": torch.ones(13)}, ValueError, r"f: A has 13 elements, but M\*N = 3\*4 = 12"),
        ({"out": torch.ones(4)}, ValueError, "f: out has 4 elements, but M = 3$"),
    ],
)
def test_a_bad_argument_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        check(**changes)


def test_a_kernel_on_the_gpu_wants_tensors_there():
    with pytest.raises(
        ValueError, match=r"A is on 'cpu', but this kernel works on 'cuda'.*cuda\(\)"
    ):
        check(device="cuda")
    assert check(device=None)


def test_a_gradient_on_an_input_and_empty_tensors_are_fine():
    assert check(A=torch.ones(3, 4, requires_grad=True))
    assert check(A=torch.ones(0), out=torch.ones(0), M=0)


def test_infinity_and_nan_are_floats():
    assert check(eps=float("inf"))["eps"] == float("inf")
    assert check(eps=float("nan"))["eps"] != check(eps=float("nan"))["eps"]


def test_sizes_that_the_exercise_states_as_numbers_or_not_at_all():
    shapes = {"A": "3 4", "out": ""}
    assert check(shapes=shapes, out=torch.ones(()))
    with pytest.raises(ValueError, match="out has 3 elements, but one value = 1"):
        check(shapes=shapes)
    # The learner named the sizes differently: nothing to compare.
    assert check(shapes={"A": "rows N", "B": "N"})
    assert check(shapes={}, A=torch.ones(1))


def test_arguments_are_matched_by_position_and_name_without_the_stream():
    assert match("f", PARAMETERS, (1, 2, 3), {"flag": 6, "N": 4, "eps": 5}) == {
        "A": 1, "out": 2, "M": 3, "N": 4, "eps": 5, "flag": 6,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, "f is missing out, M, N, eps, flag; it takes A, out, M, N, eps, flag"),
        (range(7), {}, "f got 7 arguments, but takes 6"),
        (range(6), {"K": 1}, "f has no parameter 'K'"),
        (range(6), {"s": 1}, "f has no parameter 's'"),
        (range(6), {"A": 1}, "f got 'A' twice"),
    ],
)
def test_wrong_calls_say_what_the_launcher_takes(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        match("f", PARAMETERS, tuple(args), kwargs)
