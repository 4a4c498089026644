# rejected: too imprecise
class ModelNew(Honest):
    def forward(self, x):
        y = F.linear(x.bfloat16(), self.gemm.weight.bfloat16(), self.gemm.bias.bfloat16())
        return Tail.apply(y.float(), *self.rest)
