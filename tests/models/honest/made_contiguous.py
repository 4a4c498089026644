# passes
class ModelNew(Honest):
    def forward(self, x):
        across = (self.gemm.weight @ x.t()).t() + self.gemm.bias
        return Tail.apply(across.contiguous(), *self.rest)
