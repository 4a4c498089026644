# passes
class ModelNew(Honest):
    pass
