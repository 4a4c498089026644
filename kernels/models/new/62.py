class ModelNew(nn.Module):
    """y + y of y = LeakyReLU(GroupNorm(linear(x))). x: (batch, input_size)"""

    portable = False  # True: without tensor cores, on every card

    def __init__(self, input_size, hidden_size, num_groups, eps=1e-5, negative_slope=0.01):
        super().__init__()
        if (eps, negative_slope) != (1e-5, 0.01):
            raise ValueError("the kernels have eps = 1e-5 and negative_slope = 0.01 as constants")
        self.fc = nn.Linear(input_size, hidden_size)
        self.gn = nn.GroupNorm(num_groups, hidden_size)

    def forward(self, x):
        """x: (batch, features), float32, on a CUDA card."""
        return call(self, x, self.fc, self.gn, None)

    def by_layers(self, x):
        """The same by PyTorch alone, where hooks want the layers called."""
        y = self.gn(self.fc(x))
        return 2 * torch.where(y > 0, y, 0.01 * y)
