# rejected: does not train
class ModelNew(Honest):
    def forward(self, x):
        weight, bias, scale, groups = self.rest
        return Tail.apply(self.gemm(x), weight.detach(), bias, scale, groups)
