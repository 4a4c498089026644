class ModelNew(nn.Module):
    """swish(swish(GroupNorm(linear(x))) * multiply_weight). x: (batch, in_features)"""

    portable = False  # True: without tensor cores, on every card

    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x):
        """x: (batch, features), float32, on a CUDA card."""
        return call(self, x, self.gemm, self.group_norm, self.multiply_weight)

    def by_layers(self, x):
        """The same by PyTorch alone, where hooks want the layers called."""
        y = self.group_norm(self.gemm(x))
        y = y * y.sigmoid() * self.multiply_weight
        return y * y.sigmoid()
