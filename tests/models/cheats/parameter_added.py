# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.spare = nn.Parameter(torch.zeros(1))
