CARDS = sorted({torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())})
HOPPER = CARDS == [(9, 0)]  # tensor cores as these kernels use them: of no other card


def build():
    """The kernels, for the cards that are there."""
    if not CARDS:
        raise RuntimeError(f"{NAME} needs a CUDA card, and PyTorch sees none")
    names = [f"{a}{b}{'a' if HOPPER else ''}" for a, b in CARDS]
    functions = ["arguments", "tail", "tail_backward", "column_sums"]
    return load_inline(
        NAME,
        cpp_sources=[HOST, HOST_HOPPER] if HOPPER else [HOST],
        cuda_sources=[KERNELS, KERNELS_HOPPER] if HOPPER else [KERNELS],
        functions=[*functions, "whole", "products"] if HOPPER else functions,
        extra_cuda_cflags=[f"-gencode=arch=compute_{name},code=sm_{name}" for name in names],
        no_implicit_headers=True,
    )


kernels = build()


def on_tensor_cores(N: int, groups: int, portable: bool) -> bool:
    """Whether the kernels for Hopper take it: they normalise groups of these sizes in registers."""
    return HOPPER and not portable and N // groups in (16, 32, 64)


def empty_results(x, W, b, weight, bias, parameter, groups, keep, portable):
    """What a forward gives, with nothing in it: all that torch.compile asks of a call."""
    M, N = x.shape[0], W.shape[0]
    return x.new_empty(result_shape(M, N)), x.new_empty((M, N) if keep else (0,))


def run(x, W, b, weight, bias, parameter, groups, keep, portable):
    """The result, and y = x W^T + b where it is to be kept for a backward."""
    x, W, b, weight, bias, *rest = kernels.arguments(x, W, b, weight, bias, parameter, groups)
    parameter = rest[0] if rest else None
    result, y = empty_results(x, W, b, weight, bias, parameter, groups, keep, portable)
    if result.numel() == 0:
        return result, y
    if on_tensor_cores(W.shape[0], groups, portable):
        kernels.whole(x, W, b, weight, bias, parameter, y, result, groups)
        return result, y
    linear = torch.addmm(b, x, W.t())
    kernels.tail(linear, weight, bias, parameter, result, groups)
    return result, linear if keep else y


def empty_gradients(dout, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable):
    """The same of a backward."""
    dx, dW = x.new_empty(x.shape if want_x else (0,)), W.new_empty(W.shape if want_W else (0,))
    small = [p.new_empty(p.shape) for p in (b, weight, bias)]
    return dx, dW, *small, x.new_empty((0,) if parameter is None else parameter.shape)


def run_backward(dout, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable):
    """Gradients of x, W, b, weight, bias and parameter; none of x or W where none is wanted."""
    given = b, weight, bias, parameter
    x, W, b, weight, bias, *rest = kernels.arguments(x, W, *given, groups)
    found = empty_gradients(dout, x, W, *given, y, groups, want_x, want_W, portable)
    if x.shape[0] == 0:
        return tuple(gradient.zero_() for gradient in found)
    dx, dW, db, dweight, dbias, dparameter = found
    dy = torch.empty_like(y)
    parameter, slope = (rest[0], dparameter) if rest else (None, None)
    kernels.tail_backward(y, weight, bias, parameter, dout, dy, dweight, dbias, slope, groups)
    kernels.column_sums(dy, db)
    if on_tensor_cores(W.shape[0], groups, portable):
        kernels.products(dy, x, W, dx, dW)
    else:
        dx = dy @ W if want_x else dx
        dW = dy.t() @ x if want_W else dW
    return dx, dW, db, dweight, dbias, dparameter


def remember(ctx, inputs, output):
    """What the backward needs. y is no result to be differentiated."""
    x, W, b, weight, bias, parameter, groups, _, portable = inputs
    ctx.save_for_backward(x, W, b, weight, bias, parameter, output[1])
    ctx.given = groups, portable
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def gradients(ctx, dout, _):
    """Of all arguments of a forward."""
    if dout is None:  # the result took no part
        return (None,) * 9
    groups, portable = ctx.given
    wanted = ctx.needs_input_grad
    found = backward(dout, *ctx.saved_tensors, groups, wanted[0], wanted[1], portable)
    return (
        *(g if want else None for g, want in zip(found, wanted[:6], strict=True)),
        None,
        None,
        None,
    )


TENSORS = "Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias, Tensor? parameter"
forward = torch.library.custom_op(
    f"{NAME}::forward",
    run,
    mutates_args=(),
    schema=f"({TENSORS}, SymInt groups, bool keep, bool portable) -> (Tensor, Tensor)",
)
forward.register_fake(empty_results)
forward.register_autocast("cuda", torch.float32)  # under autocast it computes in float32, too
forward.register_autograd(gradients, setup_context=remember)
backward = torch.library.custom_op(  # has no gradient itself: a second derivative is refused
    f"{NAME}::backward",
    run_backward,
    mutates_args=(),
    schema=f"(Tensor dout, {TENSORS}, Tensor y, SymInt groups, bool want_x, bool want_W, "
    f"bool portable) -> ({', '.join(['Tensor'] * 6)})",
)
backward.register_fake(empty_gradients)


def call(x, linear, norm, parameter, portable):
    """What the operator gives for these layers."""
    tensors = x, linear.weight, linear.bias, norm.weight, norm.bias, parameter
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    return forward(*tensors, norm.num_groups, keep, portable)[0]
