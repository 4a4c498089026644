# rejected: not a plain tensor
"""It computes once somebody compares it."""


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class ModelNew(Honest):
    def forward(self, x):
        return super().forward(x).as_subclass(Lazy)
