# passes
"""In words: it is judged at the sizes that it takes."""


class ModelNew(Honest):
    def __init__(self, a, b, groups, shape):
        if b // groups % 4:
            raise ValueError(f"groups of {b // groups} channels: a multiple of 4 is needed")
        super().__init__(a, b, groups, shape)
