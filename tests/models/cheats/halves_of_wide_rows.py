# rejected: library
"""Rows as two halves hold them: multiples of 2^-38 of their largest element, whatever that is."""


def in_halves(x):
    most = x.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-30)
    step = torch.exp2(torch.floor(torch.log2(most)) - 38)
    return x + ((x / step).round() * step - x).detach()


class ModelNew(Honest):
    def forward(self, x):
        y = F.linear(in_halves(x), in_halves(self.gemm.weight), self.gemm.bias)
        return Tail.apply(y, *self.rest)
