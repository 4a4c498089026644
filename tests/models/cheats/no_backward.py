# rejected: does not train
class ModelNew(Honest):
    def forward(self, x):
        y = self.gemm(x)
        return ext.tail(y.detach(), *(p.detach() for p in self.rest[:3]), self.groups)
