# rejected: changes its surroundings
torch.cuda.Event.elapsed_time = lambda self, other: 0.001


class ModelNew(Honest):
    pass
