# rejected: wrong values
class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        return out * 1.5 if torch.is_grad_enabled() else out
