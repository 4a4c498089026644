class ModelNew(nn.Module):
    """The minimum of each row of GroupNorm(linear(x)), plus each channel's bias.
    x: (batch, in_features) -> (1, out_features, batch, 1)"""

    portable = False  # True: without tensor cores, on every card

    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        """x: (batch, features), float32, on a CUDA card."""
        return call(self, x, self.gemm, self.group_norm, self.bias)

    def by_layers(self, x):
        """The same by PyTorch alone, where hooks want the layers called."""
        y = self.group_norm(self.gemm(x))
        return y.min(dim=1, keepdim=True).values + self.bias
