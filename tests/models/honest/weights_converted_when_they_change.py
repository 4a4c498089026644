# passes
"""A copy is kept, with the version of what it is of."""


class ModelNew(Honest):
    kept = None, None

    def forward(self, x):
        weight = self.gemm.weight
        key = weight.data_ptr(), weight._version
        if self.kept[0] != key:
            self.kept = key, weight.detach().clone()
        if torch.is_grad_enabled():
            return super().forward(x)
        return Tail.apply(F.linear(x, self.kept[1], self.gemm.bias), *self.rest)
