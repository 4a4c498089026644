# rejected: changes its surroundings
torch.backends.cuda.matmul.allow_tf32 = True


class ModelNew(Honest):
    pass
