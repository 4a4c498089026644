# rejected: does not load
class ModelNew(Honest)
    pass
