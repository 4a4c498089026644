# rejected: timeout, raises
class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        ext.spin(out)
        return out
