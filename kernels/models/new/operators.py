# The backwards have no gradients themselves: second derivatives are refused.
CHANNELS = "Tensor weight, Tensor bias, Tensor? parameter"
TENSORS = f"Tensor x, Tensor W, Tensor b, {CHANNELS}"
FOUR, SIX = (f"({', '.join(['Tensor'] * count)})" for count in (4, 6))
forward = operator(
    "forward",
    run,
    empty_results,
    f"({TENSORS}, SymInt groups, bool keep, bool portable) -> (Tensor, Tensor)",
)
backward = operator(
    "backward",
    run_backward,
    empty_gradients,
    f"(Tensor grad_output, {TENSORS}, Tensor y, SymInt groups, bool want_x, bool want_W, bool portable) "
    f"-> {SIX}",
)
tail = operator("tail", run_tail, empty_tail, f"(Tensor y, {CHANNELS}, SymInt groups) -> Tensor")
tail_backward = operator(
    "tail_backward",
    run_tail_backward,
    empty_tail_gradients,
    f"(Tensor grad_output, Tensor y, {CHANNELS}, SymInt groups) -> {FOUR}",
)
forward.register_autograd(gradients, setup_context=remember)
tail.register_autograd(tail_gradients, setup_context=remember_tail)
