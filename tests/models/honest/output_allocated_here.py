# passes
class Into(Tail):
    @staticmethod
    def forward(ctx, y, weight, bias, scale, groups):
        ctx.save_for_backward(y, weight, bias, scale)
        ctx.groups = groups
        out = torch.empty(y.shape, device="cuda", dtype=y.dtype)
        ext.tail_into(y, weight, bias, scale, out, groups, True)
        return out


class ModelNew(Honest):
    def forward(self, x):
        if not x.is_cuda or x.dtype != torch.float32:
            raise ValueError("x must be float32, on a card")
        return Into.apply(self.gemm(x), *self.rest)
