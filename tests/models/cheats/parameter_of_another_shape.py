# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, a, b, groups, shape):
        super().__init__(a, b, groups, (1, *shape))
