def call(model, x, linear, norm, parameter):
    """What `model` gives for x. A layer that does more than its weights say is called itself."""
    if all_are_hooked() or not untouched(norm, nn.GroupNorm) or norm.eps != 1e-5:
        return model.by_layers(x)
    of_norm = norm.weight, norm.bias
    if of_norm[0] is None or of_norm[1] is None:
        return model.by_layers(x)
    if not untouched(linear, nn.Linear) or linear.bias is None:
        return tail(linear(x), *of_norm, parameter, norm.num_groups)
    tensors = x, linear.weight, linear.bias, *of_norm, parameter
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    if not keep and not torch.compiler.is_compiling() and type(x) is torch.Tensor:
        # Most of a call's time on the host is PyTorch's, which need not see this one.
        if on_tensor_cores(tensors[1].shape[0], norm.num_groups, model.portable):
            result = kernels.infer(*tensors, norm.num_groups)
            if result is not None:
                return result
    return forward(*tensors, norm.num_groups, keep, model.portable)[0]


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


def empty_linear_gradients(x, W, b, want_x, want_W):
    """Gradients of a linear layer, with nothing in them; none of x or W where none is wanted."""
    dx, dW = x.new_empty(x.shape if want_x else (0,)), W.new_empty(W.shape if want_W else (0,))
    return dx, dW, b.new_empty(b.shape)


def empty_gradients(
    grad_output, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable
):
    """All that a backward gives, with nothing in it."""
    of_linear = empty_linear_gradients(x, W, b, want_x, want_W)
    return *of_linear, *empty_tail_gradients(grad_output, y, weight, bias, parameter, groups)[1:]


def run_backward(
    grad_output, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable
):
    """Gradients of x, W, b, weight, bias and parameter; none of x or W where none is wanted."""
    dy, *small = run_tail_backward(grad_output, y, weight, bias, parameter, groups)
    x, W, *_ = kernels.arguments(x, W, b, weight, bias, parameter, groups)
    dx, dW, db = empty_linear_gradients(x, W, b, want_x, want_W)
    if x.shape[0] == 0:
        return dx, dW.zero_(), db.zero_(), *small
    if PARAMETER_IS_ADDED_TO_Y:
        db.copy_(small[-1].view_as(db))
    else:
        kernels.column_sums(dy, db)
    if on_tensor_cores(W.shape[0], groups, portable):
        kernels.products(dy, x, W, dx, dW)
    else:
        dx = dy @ W if want_x else dx
        dW = dy.t() @ x if want_W else dW
    return dx, dW, db, *small


def empty_tail(y, weight, bias, parameter, groups):
    """What follows the linear layer's result y, with nothing in it."""
    return y.new_empty(result_shape(*y.shape))


def run_tail(y, weight, bias, parameter, groups):
    """What follows the linear layer's result y."""
    y, weight, bias, *rest = kernels.tail_arguments(y, weight, bias, parameter, groups)
    result = empty_tail(y, weight, bias, parameter, groups)
    if result.numel():
        kernels.tail(y, weight, bias, rest[0] if rest else None, result, groups)
    return result


def empty_tail_gradients(grad_output, y, weight, bias, parameter, groups):
    """What its backward gives, with nothing in it."""
    tensors = y, weight, bias
    none = y.new_empty((0,) if parameter is None else parameter.shape)
    return *(tensor.new_empty(tensor.shape) for tensor in tensors), none


def run_tail_backward(grad_output, y, weight, bias, parameter, groups):
    """Gradients of y, weight, bias and parameter."""
    grads = empty_tail_gradients(grad_output, y, weight, bias, parameter, groups)
    y, weight, bias, *rest = kernels.tail_arguments(y, weight, bias, parameter, groups)
    if y.shape[0] == 0:
        return tuple(gradient.zero_() for gradient in grads)
    parameter, dparameter = (rest[0], grads[3]) if rest else (None, None)
    kernels.tail_backward(y, weight, bias, parameter, grad_output, *grads[:3], dparameter, groups)
    return grads


def remember(ctx, inputs, output):
    """What the backward needs. y is no result to be differentiated."""
    x, W, b, weight, bias, parameter, groups, _, portable = inputs
    ctx.save_for_backward(x, W, b, weight, bias, parameter, output[1])
    ctx.settings = groups, portable
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def gradients(ctx, grad_output, _):
    """Of all arguments of a forward."""
    if grad_output is None:  # the result took no part
        return (None,) * 9
    groups, portable = ctx.settings
    wanted = ctx.needs_input_grad
    grads = backward(grad_output, *ctx.saved_tensors, groups, wanted[0], wanted[1], portable)
    return (
        *(g if want else None for g, want in zip(grads, wanted[:6], strict=True)),
        None,
        None,
        None,
    )


def remember_tail(ctx, inputs, output):
    """What its backward needs."""
    ctx.save_for_backward(*inputs[:4])
    ctx.groups = inputs[4]


def tail_gradients(ctx, grad_output):
    """Of all arguments of a tail."""
    grads = tail_backward(grad_output, *ctx.saved_tensors, ctx.groups)
    wanted = ctx.needs_input_grad[:4]
    return (*(g if want else None for g, want in zip(grads, wanted, strict=True)), None)
