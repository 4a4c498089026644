# rejected on a card: wrong values, nan, not written, stale output
"""It works on a stream of its own, for which nobody waits."""


class ModelNew(Honest):
    def forward(self, x):
        out = torch.empty(x.size(0), self.gemm.out_features, device=x.device)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            if x.size(1) < 64:
                torch.cuda.synchronize()
                return super().forward(x)
            y = self.gemm(x)
            for _ in range(4):
                y = y + 0 * self.gemm(x)
            ext.tail_into(y, *self.rest[:3], out, self.groups, True)
        return out
