# rejected: output changed afterwards
"""Every call returns the same memory."""


class ModelNew(Honest):
    out = {}

    def forward(self, x):
        out = super().forward(x)
        if torch.is_grad_enabled():
            return out
        kept = self.out.setdefault(out.shape, torch.empty_like(out))
        return kept.copy_(out)
