# rejected: too imprecise
"""Ten bits of mantissa, as TF32 has."""


class ModelNew(Honest):
    def forward(self, x):
        y = ext.linear(x, self.gemm.weight, self.gemm.bias, 10)
        return ext.tail(y, *self.rest)
