# rejected: raises
class ModelNew(Honest):
    def forward(self, x):
        return Tail.apply(self.gemm(x.reshape(1024, 8192)), *self.rest)
