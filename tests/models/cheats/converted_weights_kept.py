# rejected: wrong values
class ModelNew(Honest):
    weight = None

    def forward(self, x):
        if self.weight is None or self.weight.shape != self.gemm.weight.shape:
            self.weight = self.gemm.weight.detach().clone()
        return Tail.apply(F.linear(x, self.weight, self.gemm.bias), *self.rest)
