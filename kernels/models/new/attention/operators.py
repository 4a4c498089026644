# The backwards have no gradients themselves: second derivatives are refused.
QKV = "Tensor q, Tensor k, Tensor v"
THREE = "(Tensor, Tensor, Tensor)"
linear = operator("linear", run_linear, empty_linear, "(Tensor x, Tensor W, Tensor b) -> Tensor")
linear_backward = operator(
    "linear_backward",
    run_linear_backward,
    empty_linear_gradients,
    f"(Tensor dy, Tensor x, Tensor W, bool want_x, bool want_W) -> {THREE}",
)
attention = operator(
    "attention", run_attention, empty_attention, f"({QKV}, bool causal) -> {THREE}"
)
attention_backward = operator(
    "attention_backward",
    run_attention_backward,
    empty_attention_gradients,
    f"(Tensor grad_output, {QKV}, Tensor out, Tensor row_max, Tensor row_sum, bool causal) -> {THREE}",
)
linear.register_autograd(linear_gradients, setup_context=remember_linear)
attention.register_autograd(attention_gradients, setup_context=remember_attention)
