# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        del self.multiply_weight
