# rejected: other initial values
class ModelNew(Honest):
    def __init__(self, *arguments):
        torch.randn(1)
        super().__init__(*arguments)
