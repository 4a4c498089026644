# rejected: changes its surroundings
torch.cuda.synchronize = lambda *args: None


class ModelNew(Honest):
    pass
