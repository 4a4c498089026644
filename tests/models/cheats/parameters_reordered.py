# rejected: other parameters
class ModelNew(Honest):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        gemm = self.gemm
        del self.gemm
        self.gemm = gemm
