# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        weight = self.multiply_weight.detach()
        del self.multiply_weight
        self.register_buffer("multiply_weight", weight)
