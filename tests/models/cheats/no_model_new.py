# rejected: no ModelNew
class Model(Honest):
    pass
