# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.linear = self.gemm
        del self.gemm
