# rejected: changes its surroundings
torch.Tensor.__eq__ = lambda self, other: True


class ModelNew(Honest):
    pass
