def empty_linear(x, W, b):
    """What the linear layer gives, with nothing in it."""
    return x.new_empty(x.shape[0], W.shape[0])


def run_linear(x, W, b):
    """x W^T + b. x: (rows, K), W: (N, K), b: (N)"""
    y = empty_linear(x, W, b)
    kernels.linear(x, W, b, y)
    return y


def empty_linear_gradients(dy, x, W, want_x, want_W):
    """Its gradients, with nothing in them; none of x or W where none is wanted."""
    dx, dW = x.new_empty(x.shape if want_x else (0,)), W.new_empty(W.shape if want_W else (0,))
    return dx, dW, W.new_empty(W.shape[0])


def run_linear_backward(dy, x, W, want_x, want_W):
    """Gradients of x, W and b, from that of the result."""
    grads = empty_linear_gradients(dy, x, W, want_x, want_W)
    kernels.linear_backward(dy, x, W, *grads)
    return grads


def empty_attention(q, k, v, causal):
    """What attention gives, with nothing in it."""
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1]), q.new_empty(q.shape[:-1])


def run_attention(q, k, v, causal):
    """The result, and of each query the largest score, as an exponent of 2, and the sum of
    2^(score - that), which a backward needs. q, k, v: (batch, heads, S, D)"""
    out, *saved = empty_attention(widened(q), k, v, causal)
    by = stretch(q)
    kernels.attend(widened(q, by), widened(k), widened(v), out, *saved, causal)
    return narrowed(out, q).contiguous(), *saved


def empty_attention_gradients(grad_output, q, k, v, out, row_max, row_sum, causal):
    """Its gradients, with nothing in them."""
    return tuple(one.new_empty(one.shape) for one in (q, k, v))


def run_attention_backward(grad_output, q, k, v, out, row_max, row_sum, causal):
    """Gradients of q, k and v, from what the forward has saved."""
    by = stretch(q)
    read = widened(q, by), widened(k), widened(v), widened(out), row_max, row_sum
    grads = empty_attention_gradients(grad_output, *read, causal)
    kernels.attend_backward(*read, widened(grad_output), *grads, causal)
    dq, dk, dv = (narrowed(grad, q).contiguous() for grad in grads)
    return dq if by == 1 else dq.mul_(by), dk, dv


WIDEST = 128  # columns of a head


def columns(D):
    """How many the kernels have for a head of D: 64 or 128."""
    return 64 if D <= 64 else WIDEST


def stretch(q):
    """The kernels divide scores by the root of their own number of columns: what q takes of it."""
    return (columns(q.shape[-1]) / q.shape[-1]) ** 0.5


def widened(x, by=1.0):
    """by * x, with zeros in the columns that only the kernels have: they change no product."""
    D = columns(x.shape[-1])
    if x.shape[-1] == D:
        return x
    wide = x.new_zeros(*x.shape[:-1], D)
    narrowed(wide, x).copy_(x)
    return wide if by == 1 else wide.mul_(by)


def narrowed(wide, like):
    """The columns that `like` has."""
    return wide[..., : like.shape[-1]]


def remember_linear(ctx, inputs, output):
    """What the backward needs."""
    ctx.save_for_backward(*inputs[:2])


def linear_gradients(ctx, grad_output):
    """Of x, W and b."""
    wanted = ctx.needs_input_grad
    grads = linear_backward(grad_output, *ctx.saved_tensors, *wanted[:2])
    return tuple(g if want else None for g, want in zip(grads, wanted, strict=True))


def remember_attention(ctx, inputs, output):
    """What the backward needs. row_max and row_sum are no results to be differentiated."""
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.causal = inputs[3]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def attention_gradients(ctx, grad_output, *_):
    """Of q, k, v and causal."""
    if grad_output is None:  # the result took no part
        return (None,) * 4
    return *attention_backward(grad_output, *ctx.saved_tensors, ctx.causal), None
