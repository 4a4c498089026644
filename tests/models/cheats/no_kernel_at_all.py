# rejected: no kernel
class ModelNew(Honest):
    pass
