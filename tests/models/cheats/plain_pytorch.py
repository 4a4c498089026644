# rejected: library
class ModelNew(Honest):
    def forward(self, x):
        return in_torch(self.gemm(x), *self.rest)
