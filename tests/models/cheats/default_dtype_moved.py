# rejected: changes its surroundings, does not load, raises, other parameters
class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        torch.set_default_dtype(torch.float16)
        return out
