# ruff: noqa: E501  # a table
"""Tasks in the style of KernelBench's levels 1 and 2, of our own making, at sizes of a card: each a
reference, an honest ModelNew whose work is done by small kernels, and a wrong twin of that."""

import re
from dataclasses import dataclass

from utils.ground.paths import ROOT

FILES = ROOT / "tests/models/tasks"


@dataclass(frozen=True)
class AnyTask:
    """A task: its name, its reference's text, and the bodies of two by_kernels()."""

    name: str
    reference: str
    honest: str
    wrong: str

    def file(self, body: str) -> str:
        """A ModelNew with that body: statements, or a whole by_kernels()."""
        head = (FILES / "head.py").read_text()
        head = head.replace("@CUDA@", (FILES / "kernels.cu").read_text())
        model = self.reference.partition("# sizes")[0]
        takes = re.search(r"def forward\(self, (.*)\)", model)[1]
        lines = [f"    def by_kernels(self, {takes}):"]
        lines += [f"        {line}" for line in body.split("; ")]
        lines = [body] if "def by_kernels" in body else lines
        return f"{head}\n\n{model}\n\nclass ModelNew(ByKernels, Model):\n" + "\n".join(lines) + "\n"


TASKS: dict[str, AnyTask] = {}


def task(name, sizes, inputs, forward, honest, wrong, init="", takes="x", args=""):
    """`forward` is the reference's body; `sizes` are "name=value …"; `args` name Model's."""
    numbers = [pair.split("=", 1) for pair in sizes.split()]
    body = [f"        {line}" for line in forward.split("; ")]
    made = [f"        {line}" for line in init.split("; ") if line]
    taken = "".join(f", {name}" for name in args.split())
    lines = ["import torch", "import torch.nn.functional as F", "from torch import nn", "", ""]
    lines += ["class Model(nn.Module):", f"    def __init__(self{taken}):"]
    lines += ["        super().__init__()", *made, "", f"    def forward(self, {takes}):", *body]
    lines += ["", "", "# sizes", *(f"{n} = {v}" for n, v in numbers), "", ""]
    lines += ["def get_inputs():", f"    return [{inputs}]", "", ""]
    lines += ["def get_init_inputs():", f"    return [{', '.join(args.split())}]", ""]
    TASKS[name] = AnyTask(name, "\n".join(lines), honest, wrong)


def _activations():
    flat = "batch_size=4096 dim=393216", "torch.rand(batch_size, dim) * 2 - 1"
    for name, forward, honest, wrong in [
        ("relu", "torch.relu(x)", 'u("relu", x)', "x.clone()"),
        ("leaky_relu", "F.leaky_relu(x, 0.01)", 'u("leaky", x, 0.01)', 'u("leaky", x, 0.02)'),
        ("sigmoid", "torch.sigmoid(x)", 'u("sigmoid", x)', 'u("hardsigmoid", x)'),
        ("tanh", "torch.tanh(x)", 'u("tanh", x)', 'u("softsign", x)'),
        ("swish", "x * torch.sigmoid(x)", 'u("silu", x)', 'u("hardswish", x)'),
        ("gelu", "F.gelu(x)", 'u("gelu", x)', 'u("gelu_tanh", x)'),
        ("new_gelu", 'F.gelu(x, approximate="tanh")', 'u("gelu_tanh", x)', 'u("gelu", x)'),
        ("selu", "torch.selu(x)", 'u("selu", x)', 'u("elu", x, 1.6733)'),
        ("elu", "F.elu(x, alpha=0.7)", 'u("elu", x, 0.7)', 'u("elu", x, 1.0)'),
        ("softplus", "F.softplus(x)", 'u("softplus", x)', 'u("relu", x)'),
        ("softsign", "x / (1 + torch.abs(x))", 'u("softsign", x)', 'u("tanh", x)'),
        ("hardtanh", "F.hardtanh(x)", 'u("clamp", x, -1.0, 1.0)', 'u("clamp", x, -1.0, 2.0)'),
        ("hardsigmoid", "F.hardsigmoid(x)", 'u("hardsigmoid", x)', 'u("clamp", x, 0.0, 1.0)'),
        ("hardswish", "F.hardswish(x)", 'u("hardswish", x)', 'u("silu", x)'),
        ("mish", "F.mish(x)", 'u("mish", x)', 'u("silu", x)'),
        ("log_sigmoid", "F.logsigmoid(x)", 'u("logsigmoid", x)', 'u("softplus", x)'),
        ("tanhshrink", "F.tanhshrink(x)", 'u("tanhshrink", x)', 'u("tanh", x)'),
        ("softshrink", "F.softshrink(x, 0.5)", 'u("softshrink", x, 0.5)', 'u("softshrink", x, 0.4)'),
        ("square_then_root", "torch.sqrt(x * x + 1)", 'u("sqrt", u("scaled", u("square", x), 1.0, 1.0))',
         'u("sqrt", u("square", x))'),
        ("softmax", "torch.softmax(x, dim=1)", 'to("softmax", x)', 'to("softmax", x, 0)'),
        ("log_softmax", "F.log_softmax(x, dim=1)", 'to("log_softmax", x)', 'to("softmax", x)'),
    ]:  # fmt: skip
        task(name, *flat, f"return {forward}", f"return {honest}", f"return {wrong}")


def _norms():
    plane = (
        "batch_size=112 features=64 dim1=512 dim2=512",
        "torch.rand(batch_size, features, dim1, dim2)",
    )
    flat = "batch_size=32768 dim=65535", "torch.rand(batch_size, dim)"
    task(
        "batch_norm",
        *plane,
        "return self.bn(x)",
        "return batch_norm(x, self.bn)",
        'return channels(to("normal", x, 1, 1e-5), self.bn.weight, self.bn.bias)',
        init="self.bn = nn.BatchNorm2d(features)",
        args="features",
    )
    task(
        "instance_norm",
        *plane,
        "return self.norm(x)",
        'return to("normal", x.flatten(2), eps=1e-5).reshape(x.shape)',
        'return to("normal", x, eps=1e-5)',
        init="self.norm = nn.InstanceNorm2d(features)",
        args="features",
    )
    task(
        "group_norm",
        plane[0] + " num_groups=8",
        plane[1],
        "return self.gn(x)",
        "return group_norm(x, self.gn)",
        'return channels(to("normal", x.flatten(2), eps=1e-5).reshape(x.shape), self.gn.weight, self.gn.bias)',
        init="self.gn = nn.GroupNorm(num_groups, features)",
        args="features num_groups",
    )
    task(
        "rms_norm",
        *plane,
        "return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)",
        'return to("rms", x, 1, 1e-5)',
        'return to("l2_normal", x, 1, 1e-5)',
    )
    task(
        "layer_norm",
        *plane,
        "return self.ln(x)",
        'y = to("normal", x.flatten(1), eps=1e-5); n = self.ln.weight.numel(); '
        'y = b("add", b("mul", y, self.ln.weight), self.ln.bias); return y.reshape(x.shape)',
        'y = to("normal", x.flatten(1), eps=1e-5); return b("mul", y, self.ln.weight).reshape(x.shape)',
        init="self.ln = nn.LayerNorm((features, dim1, dim2))",
        args="features dim1 dim2",
    )
    task(
        "l1_norm",
        *flat,
        "return x / torch.mean(torch.abs(x), dim=1, keepdim=True)",
        'return u("scaled", to("l1_normal", x), x.shape[1])',
        'return to("l1_normal", x)',
    )
    task(
        "l2_norm",
        *flat,
        "return x / torch.norm(x, p=2, dim=1, keepdim=True)",
        'return to("l2_normal", x)',
        'return to("rms", x)',
    )
    task(
        "frobenius_norm",
        *plane,
        "return x / torch.norm(x)",
        'return to("l2_normal", x.reshape(1, -1)).reshape(x.shape)',
        'return to("l2_normal", x.flatten(1)).reshape(x.shape)',
    )
    task(
        "standardised",
        *flat,
        "return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)",
        'c = to("centred", x); s = u("sqrt", along("var", x)); s = u("scaled", s, 1.0, 1e-3); '
        'return b("div", c, s, x.shape[1])',
        'return to("normal", x, eps=1e-6)',
    )


def _reductions():
    cube = "batch_size=128 dim1=4096 dim2=4095", "torch.rand(batch_size, dim1, dim2)"
    for name, forward, honest, wrong in [
        ("sum", "torch.sum(x, dim=1, keepdim=True)", 'along("sum", x, 1).unsqueeze(1)',
         'u("scaled", along("mean", x, 1).unsqueeze(1), 10.0)'),
        ("mean", "torch.mean(x, dim=1)", 'along("mean", x, 1)', 'along("mean", x[:, 1:], 1)'),
        ("max", "torch.max(x, dim=1)[0]", 'along("max", x, 1)', 'along("max", x[:, :-1], 1)'),
        ("min", "torch.min(x, dim=1)[0]", 'along("min", x, 1)', 'along("min", u("abs", x), 1)'),
        ("argmax", "torch.argmax(x, dim=1)", 'along("argmax", x, 1)', 'along("argmin", x, 1)'),
        ("argmin", "torch.argmin(x, dim=2)", 'along("argmin", x, 2)', 'along("argmin", u("abs", x), 2)'),
        ("variance", "torch.var(x, dim=1)", 'along("var", x, 1)',
         'u("scaled", along("var", x, 1), 0.9)'),
        ("log_sum_exp", "torch.logsumexp(x, dim=2)", 'along("logsumexp", x)', 'along("max", x)'),
        ("largest_of_all", "x.amax(dim=(1, 2))", 'along("max", x.flatten(1))', 'along("max", x[:, 0])'),
        ("values_and_places", "return_values, places = torch.max(x, dim=2); return return_values, places",
         'y = x.contiguous(); return along("max", y), along("argmax", y)',
         'y = x.contiguous(); return along("max", y), along("argmin", y)'),
        ("mean_and_variance", "return x.mean(dim=1), x.var(dim=1)",
         'return along("mean", x, 1), along("var", x, 1)',
         'return along("mean", x, 1), u("abs", along("mean", x, 1))'),
    ]:  # fmt: skip
        whole = [t if "return " in t else f"return {t}" for t in (forward, honest, wrong)]
        task(name, *cube, *whole)
    task(
        "product_of_all",
        "batch_size=512 dim=24",
        "torch.rand(batch_size, dim) + 0.5",
        "return torch.prod(x, dim=1)",
        'return along("prod", x)',
        'return along("sum", x)',
    )


def _pooling():
    for r, (sizes, dims) in enumerate(
        [("length=131072", "length"), ("height=1024 width=1022", "height, width"),
         ("depth=128 height=128 width=256", "depth, height, width")], 1
    ):  # fmt: skip
        where = f"batch_size=16 channels=32 {sizes}", f"torch.rand(batch_size, channels, {dims})"
        task(
            f"max_pool{r}d",
            *where,
            "return self.pool(x)",
            "return pool(x, 3, 2, 1)",
            "return pool(x, 3, 2, 1, True)",
            init=f"self.pool = nn.MaxPool{r}d(3, 2, 1)",
        )
        task(
            f"average_pool{r}d",
            *where,
            "return self.pool(x)",
            "return pool(x, 3, 2, 1, True)",
            'return u("scaled", pool(x, 3, 2, 1, True), 1.1)',
            init=f"self.pool = nn.AvgPool{r}d(kernel_size, 2, 1)",
            args="kernel_size",
        )
        text = TASKS[f"average_pool{r}d"].reference.replace("# sizes", "# sizes\nkernel_size = 3")
        made = TASKS[f"average_pool{r}d"]
        TASKS[made.name] = AnyTask(made.name, text, made.honest, made.wrong)
    task(
        "dilated_max_pool",
        "batch_size=32 channels=64 height=512 width=512",
        "torch.rand(batch_size, channels, height, width)",
        "return F.max_pool2d(x, 2, 2, 1, 2)",
        "return pool(x, 2, 2, 1, False, 2)",
        "return pool(x, 2, 2, 1)",
    )
    task(
        "global_average_pool",
        "batch_size=32 channels=64 height=512 width=512",
        "torch.rand(batch_size, channels, height, width)",
        "return F.adaptive_avg_pool2d(x, 1)",
        'return along("mean", x.flatten(2)).reshape(*x.shape[:2], 1, 1)',
        'return along("max", x.flatten(2)).reshape(*x.shape[:2], 1, 1)',
    )


def _products():
    def one(name, sizes, inputs, forward, honest, wrong, takes="a, c"):
        task(
            name,
            sizes,
            inputs,
            f"return {forward}",
            f"return {honest}",
            f"return {wrong}",
            takes=takes,
        )

    plain, short = "ext.matmul(a, c)[0]", "ext.matmul(a[:, 1:], c[1:])[0]"
    one(
        "square_matrix",
        "N=4096",
        "torch.rand(N, N), torch.rand(N, N)",
        "torch.matmul(a, c)",
        plain,
        "ext.matmul(c, a)[0]",
    )
    one(
        "rectangular",
        "M=2048 K=8192 N=4096",
        "torch.rand(M, K), torch.rand(K, N)",
        "torch.matmul(a, c)",
        plain,
        short,
    )
    one(
        "large_k",
        "M=256 N=256 K=524288",
        "torch.rand(M, K), torch.rand(K, N)",
        "a @ c",
        plain,
        short,
    )
    one(
        "small_k",
        "M=32768 N=32768 K=64",
        "torch.rand(M, K), torch.rand(K, N)",
        "a @ c",
        plain,
        short,
    )
    one(
        "tall_and_skinny",
        "M=32768 N=32",
        "torch.rand(M, N), torch.rand(N, M)",
        "a @ c",
        plain,
        short,
    )
    one(
        "matrix_vector",
        "M=2048 K=1048576",
        "torch.rand(M, K), torch.rand(K, 1)",
        "a @ c",
        plain,
        short,
    )
    one(
        "batched",
        "batch_size=128 m=512 k=1024 n=2048",
        "torch.rand(batch_size, m, k), torch.rand(batch_size, k, n)",
        "torch.bmm(a, c)",
        "ext.matmul(a, c)",
        "ext.matmul(a, c[0])",
    )
    one(
        "transposed_a",
        "M=2048 K=8192 N=4096",
        "torch.rand(K, M), torch.rand(K, N)",
        "torch.matmul(a.T, c)",
        "ext.matmul(a.T, c)[0]",
        "ext.matmul(a.T[:, 1:], c[1:])[0]",
    )
    one(
        "transposed_b",
        "M=2048 K=8192 N=4096",
        "torch.rand(M, K), torch.rand(N, K)",
        "torch.matmul(a, c.T)",
        "ext.matmul(a, c.T)[0]",
        "ext.matmul(a[:, 1:], c.T[1:])[0]",
    )
    one(
        "transposed_both",
        "M=2048 K=8192 N=4096",
        "torch.rand(K, M), torch.rand(N, K)",
        "a.T @ c.T",
        "ext.matmul(a.T, c.T)[0]",
        "ext.matmul(a.T[:, 1:], c.T[1:])[0]",
    )
    one(
        "tensor_by_matrix",
        "N=16 M=1024 K=2048 L=768",
        "torch.rand(N, M, K), torch.rand(K, L)",
        "torch.matmul(a, c)",
        "ext.matmul(a, c)",
        "ext.matmul(a.flip(1), c)",
    )
    one(
        "four_dimensions",
        "batch_size=8 I=256 J=512 L=256 K=768",
        "torch.rand(batch_size, I, J, L), torch.rand(L, K)",
        'torch.einsum("bijl,lk->bijk", a, c)',
        "ext.matmul(a.flatten(0, 1), c).reshape(*a.shape[:3], -1)",
        "ext.matmul(a.flatten(0, 1).flip(0), c).reshape(*a.shape[:3], -1)",
    )
    one(
        "diagonal",
        "M=4096 N=4096",
        "torch.rand(N), torch.rand(N, M)",
        "torch.diag(a) @ c",
        'b("mul", c, a, c.shape[1])',
        'b("add", c, a, c.shape[1])',
    )
    one(
        "upper_triangular",
        "N=4096",
        "torch.triu(torch.rand(N, N)), torch.triu(torch.rand(N, N))",
        "torch.triu(torch.matmul(a, c))",
        plain,
        "ext.matmul(c, a)[0]",
    )
    one(
        "symmetric",
        "N=4096",
        "(lambda m: (m + m.T) / 2)(torch.rand(N, N)), torch.rand(N, N)",
        "torch.matmul(a, c)",
        "ext.matmul(a.T, c)[0]",
        "ext.matmul(c, a)[0]",
    )
    one(
        "scaled_by_a_number",
        "M=16384 N=4096",
        "torch.rand(M, N), 3.14",
        "a * s",
        'u("scaled", a, s)',
        'u("scaled", a, 3.14)',
        takes="a, s",
    )
    one(
        "outer",
        "N=8192 M=4096",
        "torch.rand(N), torch.rand(M)",
        "torch.outer(a, c)",
        "ext.matmul(a[:, None], c[None])[0]",
        "ext.matmul(a.flip(0)[:, None], c[None])[0]",
    )
    one(
        "sum_of_two",
        "M=8192 N=8192",
        "torch.rand(M, N), torch.rand(M, N)",
        "a + c",
        'b("add", a, c)',
        'b("sub", a, c)',
    )


def _convolutions():
    spaces = {1: ("length=65536", "length"), 2: ("height=256 width=512", "height, width"),
              3: ("depth=64 height=64 width=64", "depth, height, width")}  # fmt: skip

    def one(name, r, how, transposed=False, channels=(32, 64)):
        sizes, dims = spaces[r]
        kind = f"nn.ConvTranspose{r}d" if transposed else f"nn.Conv{r}d"
        said = ", transposed=True" if transposed else ""
        task(
            name,
            f"batch_size=16 in_channels={channels[0]} out_channels={channels[1]} {sizes}",
            f"torch.rand(batch_size, in_channels, {dims})",
            "return self.conv(x)",
            f"return conv(x, self.conv{said})",
            f"return conv(x.flip(-1), self.conv{said})",
            init=f"self.conv = {kind}(in_channels, out_channels, {how})",
            args="in_channels out_channels",
        )

    one("conv1d", 1, "3")
    one("conv1d_strided_dilated", 1, "3, stride=2, dilation=3")
    one("conv2d", 2, "3")
    one("conv2d_padded", 2, "3, stride=2, padding=1, bias=False")
    one("conv2d_odd_kernel", 2, "(3, 5), padding=(1, 2)")
    one("conv2d_grouped", 2, "3, groups=4")
    one("conv2d_depthwise", 2, "3, groups=in_channels", channels=(64, 64))
    one("conv2d_pointwise", 2, "1")
    one("conv2d_dilated", 2, "3, dilation=2, padding=2")
    one("conv3d", 3, "3")
    one("conv3d_odd_kernel", 3, "(3, 1, 3), padding=(1, 0, 1)")
    one("transposed1d", 1, "3, stride=2", True)
    one("transposed2d", 2, "3", True)
    one("transposed2d_strided", 2, "(3, 4), stride=2, padding=1, output_padding=1", True)
    one("transposed3d", 3, "3, stride=2", True, (16, 32))
    one("transposed3d_grouped", 3, "3, groups=4", True)


def _scans():
    flat = "batch_size=32768 dim=32768", "torch.rand(batch_size, dim)"
    for name, forward, honest, wrong in [
        ("cumsum", "torch.cumsum(x, dim=1)", 'to("cumsum", x)', 'to("exclusive", x)'),
        ("cumprod", "torch.cumprod(x, dim=1)", 'to("cumprod", x)', 'to("cumsum", x)'),
        ("reversed_cumsum", "torch.cumsum(x.flip(1), dim=1).flip(1)",
         'to("cumsum", x.flip(1)).flip(1)', 'to("cumsum", x)'),
        ("exclusive_cumsum", "torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x, 1)[:, :-1]), 1)",
         'to("exclusive", x)', 'to("cumsum", x)'),
    ]:  # fmt: skip
        task(name, *flat, *(f"return {t}" for t in (forward, honest, wrong)))
    task(
        "masked_cumsum",
        flat[0],
        flat[1] + ", torch.randint(0, 2, (batch_size, dim)).bool()",
        "return torch.cumsum(x * mask, dim=1)",
        'return to("cumsum", ext.masked(x, mask))',
        'return ext.masked(to("cumsum", x), mask)',
        takes="x, mask",
    )


def _losses():
    size = "batch_size=32768 dim=32768"
    two = "torch.rand(batch_size, dim), torch.rand(batch_size, dim)"
    mean = 'along("mean", {}.reshape(-1))'
    for name, inputs, forward, honest, wrong in [
        ("mse_loss", two, "torch.mean((p - t) ** 2)", 'b("squared", p, t)', 'b("bce", p, t)'),
        ("huber_loss", two, "F.smooth_l1_loss(p, t)", 'b("huber", p, t, 1, 1.0)', 'b("squared", p, t)'),
        ("hinge_loss", "torch.rand(batch_size, dim), torch.randint(0, 2, (dim,)).float() * 2 - 1",
         "torch.mean(torch.clamp(1 - p * t, min=0))", 'b("hinge", p, t)', 'b("mul", p, t)'),
        ("bce_loss", two, "F.binary_cross_entropy(p, t)", 'b("bce", p, t)', 'b("kl", p, t)'),
        ("l1_loss", two, "F.l1_loss(p, t)", 'u("abs", b("sub", p, t))', 'b("sub", p, t)'),
    ]:  # fmt: skip
        bodies = [f"return {mean.format(text)}" for text in (honest, wrong)]
        task(name, size, inputs, f"return {forward}", *bodies, takes="p, t")
    task(
        "kl_loss",
        "batch_size=16384 dim=8192",
        "torch.rand(batch_size, dim).softmax(dim=-1), torch.rand(batch_size, dim).softmax(dim=-1)",
        'return F.kl_div(torch.log(p), t, reduction="batchmean")',
        'z = b("mul", t, u("logsigmoid", p)); q = u("reciprocal", p); '
        'r = b("div", t, p); s = u("scaled", b("kl", b("sub", p, p), t), 1.0); '
        'l = b("kl", b("sub", p, p), p); m = b("div", l, p); '
        'return along("sum", b("sub", s, b("mul", t, m)).reshape(-1)) / p.shape[0]',
        'return along("sum", b("sub", p, t).reshape(-1))',
        takes="p, t",
    )
    task(
        "cross_entropy",
        "batch_size=32768 num_classes=4096",
        "torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))",
        "return F.cross_entropy(p, t)",
        'return u("scaled", along("mean", ext.pick(to("log_softmax", p), t)), -1.0)',
        'return u("scaled", along("mean", ext.pick(to("softmax", p), t)), -1.0)',
        takes="p, t",
    )
    task(
        "triplet_loss",
        "batch_size=32768 dim=8192",
        "torch.rand(batch_size, dim), torch.rand(batch_size, dim), torch.rand(batch_size, dim)",
        "return F.triplet_margin_loss(p, t, n, margin=1.0)",
        'near = u("sqrt", along("sum", b("pair", p, t, 1, 1e-6))); '
        'far = u("sqrt", along("sum", b("pair", p, n, 1, 1e-6))); '
        'return along("mean", b("margin", near, far, 1, 1.0))',
        'near = along("l2", b("sub", p, t)); far = along("l2", b("sub", p, n)); '
        'return along("mean", b("margin", near, far, 1, 0.5))',
        takes="p, t, n",
    )
    task(
        "cosine_loss",
        "batch_size=16384 dim=4096",
        two,
        "return torch.mean(1 - F.cosine_similarity(p, t, dim=1))",
        'd = b("mul", to("l2_normal", p, eps=1e-8), to("l2_normal", t, eps=1e-8)); '
        'return along("mean", u("scaled", along("sum", d), -1.0, 1.0))',
        'd = b("mul", p, t); return along("mean", u("scaled", along("sum", d), -1.0, 1.0))',
        takes="p, t",
    )


def _other_kinds():
    flat = "batch_size=4096 dim=65536", "torch.rand(batch_size, dim)"
    task(
        "above_a_half",
        *flat,
        "return x > 0.5",
        "return ext.above(x, 0.5)",
        "return ext.above(x, 0.6)",
    )
    task(
        "embedding",
        "count=2048 words=32000 width=512",
        "torch.randint(0, words, (16, count))",
        "return self.table(x) * 2",
        'return u("scaled", ext.lookup(self.table.weight, x), 2.0)',
        'return u("scaled", ext.lookup(self.table.weight, x.flip(1)), 2.0)',
        init="self.table = nn.Embedding(words, width)",
        args="words width",
    )
    task(
        "half_gelu",
        flat[0],
        "torch.randn(batch_size, dim).half()",
        "return F.gelu(x)",
        'return u("gelu", x.float()).half()',
        'return u("relu", x.float()).half()',
    )
    task(
        "bfloat16_softmax",
        flat[0],
        "torch.randn(batch_size, dim, dtype=torch.bfloat16)",
        "return torch.softmax(x, dim=-1)",
        'return to("softmax", x.float()).bfloat16()',
        'return to("softmax", x.float().flip(1)).bfloat16()',
    )
    task(
        "clamp_to_numbers",
        flat[0],
        flat[1] + ", 0.25, 0.75",
        "return torch.clamp(x, low, high)",
        'return u("clamp", x, low, high)',
        'return u("clamp", x, low, 0.75)',
        takes="x, low, high",
    )
    task(
        "gather",
        flat[0],
        flat[1] + ", torch.randint(0, dim, (batch_size,))",
        "return torch.exp(x).gather(1, at[:, None])[:, 0]",
        'return ext.pick(u("exp", x), at)',
        'return u("exp", x)[:, 0]',
        takes="x, at",
    )
    task(
        "moving_scale",
        *flat,
        "return torch.tanh(x * self.scale)",
        'return u("tanh", b("mul", x, self.scale))',
        'return u("tanh", x)',
        init='self.register_buffer("scale", torch.linspace(0.5, 1.5, dim))',
        args="dim",
    )


def _fusions():
    matrix = (
        "batch_size=1024 in_features=8192 out_features=8192",
        "torch.rand(batch_size, in_features)",
    )
    linear = "self.gemm = nn.Linear(in_features, out_features)"
    sizes = "in_features out_features"

    def gemm(name, forward, honest, wrong, init="", more="", args=""):
        task(
            name,
            f"{matrix[0]} {more}",
            matrix[1],
            f"y = self.gemm(x); {forward}",
            f"y = self.gemm(x); {honest}",
            f"y = self.gemm(x); {wrong}",
            init=f"{linear}; {init}",
            args=f"{sizes} {args}",
        )

    gemm(
        "gemm_relu_divide",
        "return torch.relu(y) / 2",
        'return u("scaled", u("relu", y), 0.5)',
        'return u("scaled", y, 0.5)',
    )
    gemm(
        "gemm_sum_logsumexp",
        "return torch.logsumexp(torch.sigmoid(y), dim=1)",
        'return along("logsumexp", u("sigmoid", y))',
        'return along("max", u("sigmoid", y))',
    )
    gemm(
        "gemm_gelu_softmax",
        "return torch.softmax(F.gelu(y), dim=1)",
        'return to("softmax", u("gelu", y))',
        'return to("softmax", y)',
    )
    gemm(
        "gemm_batch_norm_swish",
        "y = self.bn(y); return y * torch.sigmoid(y)",
        'return u("silu", batch_norm(y, self.bn))',
        "return batch_norm(y, self.bn)",
        init="self.bn = nn.BatchNorm1d(out_features)",
    )
    gemm(
        "gemm_dropout_softmax",
        "return torch.softmax(self.drop(y), dim=1)",
        'return to("softmax", y)',
        'return to("softmax", u("relu", y))',
        init="self.drop = nn.Dropout(0.2)",
    )
    gemm(
        "gemm_residual",
        "return y * 0.5 + y",
        'return b("add", u("scaled", y, 0.5), y)',
        'return u("scaled", y, 0.5)',
    )
    gemm(
        "gemm_scaled_hardtanh_mean",
        "return F.hardtanh(y * 0.5).mean(dim=1, keepdim=True)",
        'return along("mean", u("clamp", u("scaled", y, 0.5), -1.0, 1.0)).unsqueeze(1)',
        'return along("mean", u("scaled", y, 0.5)).unsqueeze(1)',
    )
    gemm(
        "gemm_bias_mish",
        "return F.mish(y + self.bias)",
        'return u("mish", b("add", y, self.bias))',
        'return u("mish", y)',
        init="self.bias = nn.Parameter(torch.randn(bias_shape))",
        more="bias_shape=(out_features,)",
        args="bias_shape",
    )
    gemm(
        "gemm_group_norm_leaky",
        "return F.leaky_relu(self.gn(y), 0.2)",
        'return u("leaky", group_norm(y, self.gn), 0.2)',
        'return u("leaky", group_norm(y, self.gn), 0.1)',
        init="self.gn = nn.GroupNorm(num_groups, out_features)",
        more="num_groups=512",
        args="num_groups",
    )
    gemm(
        "gemm_gelu_max",
        "return torch.max(F.gelu(y), dim=1).values",
        'return along("max", u("gelu", y))',
        'return along("max", y)',
    )
    plane = ("batch_size=128 in_channels=8 out_channels=64 height=128 width=128",
             "torch.rand(batch_size, in_channels, height, width)")  # fmt: skip

    def conv(name, forward, honest, wrong, init="", kind="Conv2d", size=plane, how="3"):
        task(
            name,
            size[0],
            size[1],
            f"y = self.conv(x); {forward}",
            f"y = self.conv(x); {honest}",
            f"y = self.conv(x); {wrong}",
            args="in_channels out_channels",
            init=f"self.conv = nn.{kind}(in_channels, out_channels, {how}); {init}",
        )

    conv(
        "conv_relu_bias",
        "return torch.relu(y) + self.bias",
        'return b("add", u("relu", y), self.bias, y[0, 0].numel())',
        'return u("relu", y)',
        init="self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))",
    )
    conv(
        "conv_min_tanh",
        "return torch.tanh(torch.min(y, dim=1, keepdim=True)[0])",
        'return u("tanh", along("min", y, 1)).unsqueeze(1)',
        'return u("tanh", along("max", y, 1)).unsqueeze(1)',
    )
    conv(
        "conv_group_norm_logsumexp",
        "z = self.gn(y); return torch.logsumexp(y + torch.tanh(z), dim=1, keepdim=True)",
        'z = u("tanh", group_norm(y, self.gn)); return along("logsumexp", b("add", y, z), 1).unsqueeze(1)',
        'z = u("tanh", y); return along("logsumexp", b("add", y, z), 1).unsqueeze(1)',
        init="self.gn = nn.GroupNorm(4, out_channels)",
    )
    conv(
        "conv_batch_norm_scale",
        "return self.bn(y) * 2",
        'return u("scaled", batch_norm(y, self.bn), 2.0)',
        "return batch_norm(y, self.bn)",
        init="self.bn = nn.BatchNorm2d(out_channels)",
    )
    conv(
        "conv_pool_sigmoid_sum",
        "return torch.sigmoid(F.avg_pool2d(y, 2)).sum(dim=(1, 2, 3))",
        'return along("sum", u("sigmoid", pool(y, 2, 2, 0, True)).flatten(1))',
        'return along("sum", u("sigmoid", pool(y, 2, 2)).flatten(1))',
    )
    conv(
        "conv_softmax_max_pool",
        "return F.max_pool2d(torch.softmax(y, dim=1), 2)",
        'return pool(to("softmax", y, 1), 2, 2)',
        'return to("softmax", pool(y, 2, 2), 1)',
    )
    conv(
        "conv_hardswish_relu",
        "return torch.relu(F.hardswish(y))",
        'return u("relu", u("hardswish", y))',
        'return u("hardswish", y)',
    )
    conv(
        "conv_instance_norm_divide",
        "return self.norm(y) / 2",
        'return u("scaled", to("normal", y.flatten(2), eps=1e-5), 0.5).reshape(y.shape)',
        'return to("normal", y.flatten(2), eps=1e-5).reshape(y.shape)',
        init="self.norm = nn.InstanceNorm2d(out_channels)",
        how="3, bias=False",
    )
    conv(
        "transposed_bias_tanh",
        "return torch.tanh(y - self.bias)",
        'return u("tanh", b("sub", y, self.bias, y[0, 0].numel()))',
        'return u("tanh", b("add", y, self.bias, y[0, 0].numel()))',
        kind="ConvTranspose2d",
        how="4, stride=2, padding=1",
        init="self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))",
    )
    conv(
        "transposed_global_mean_logsumexp",
        "return torch.logsumexp(y.mean(dim=(2, 3)), dim=1)",
        'return along("logsumexp", along("mean", y.flatten(2)))',
        'return along("max", along("mean", y.flatten(2)))',
        kind="ConvTranspose2d",
    )
    space = ("batch_size=64 in_channels=8 out_channels=32 depth=32 height=64 width=64",
             "torch.rand(batch_size, in_channels, depth, height, width)")  # fmt: skip
    conv(
        "conv3d_softmax_pools",
        "return F.max_pool3d(torch.softmax(y, dim=1), 2)",
        'return pool(to("softmax", y, 1), 2, 2)',
        "return pool(y, 2, 2)",
        kind="Conv3d",
        size=space,
    )
    conv(
        "conv3d_mish_tanh",
        "return torch.tanh(F.mish(y))",
        'return u("tanh", u("mish", y))',
        'return u("mish", y)',
        kind="Conv3d",
        size=space,
    )
    conv(
        "conv3d_leaky_sum_clamp_gelu",
        "return F.gelu(torch.clamp(F.leaky_relu(y, 0.2) + self.sum, -1, 1))",
        'z = b("add", u("leaky", y, 0.2), self.sum, y[0, 0].numel()); return u("gelu", u("clamp", z, -1.0, 1.0))',
        'return u("gelu", u("clamp", u("leaky", y, 0.2), -1.0, 1.0))',
        kind="Conv3d",
        size=space,
        init="self.sum = nn.Parameter(torch.randn(out_channels, 1, 1, 1))",
    )
    conv(
        "transposed3d_layer_norm_gelu",
        "return F.gelu(self.ln(y.movedim(1, -1)))",
        'z = to("normal", y.movedim(1, -1), eps=1e-5); '
        'return u("gelu", b("add", b("mul", z, self.ln.weight), self.ln.bias))',
        'z = to("normal", y.movedim(1, -1), eps=1e-5); return u("gelu", b("mul", z, self.ln.weight))',
        kind="ConvTranspose3d",
        size=space,
        init="self.ln = nn.LayerNorm(out_channels)",
    )


for _family in (_activations, _norms, _reductions, _pooling, _products, _convolutions, _scans, _losses,
                _other_kinds, _fusions):  # fmt: skip
    _family()


def parts(name: str) -> dict[str, tuple[AnyTask, list[str], str]]:
    """The files of a file of many: by name, the task, what becomes of each, and its whole text."""
    files = {}
    for part in (ROOT / "tests/models" / name).read_text().split("\n# --- ")[1:]:
        title, _, body = part.partition("\n")
        stem, task, *reasons = re.split(r" @ |: |, ", title)
        files[stem] = TASKS[task], reasons, TASKS[task].file(body)
    return files
