# rejected: parameter modified
class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        ext.fill(self.group_norm.bias, 0.0, 32)
        return out
