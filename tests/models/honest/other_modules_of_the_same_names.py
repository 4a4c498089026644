# passes
class Weights(nn.Module):
    """A linear layer's parameters, made as it makes them, and no more."""

    def __init__(self, like):
        super().__init__()
        self.weight, self.bias = like.weight, like.bias


class ModelNew(nn.Module):
    def __init__(self, a, b, groups, shape):
        super().__init__()
        self.gemm = Weights(nn.Linear(a, b))
        self.group_norm = Weights(nn.GroupNorm(groups, b))
        self.multiply_weight = nn.Parameter(torch.randn(shape))
        self.groups = groups

    def forward(self, x):
        y = F.linear(x, self.gemm.weight, self.gemm.bias)
        return Tail.apply(
            y, self.group_norm.weight, self.group_norm.bias, self.multiply_weight, self.groups
        )
