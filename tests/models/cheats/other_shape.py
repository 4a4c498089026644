# rejected: wrong shape
class ModelNew(Honest):
    def forward(self, x):
        return super().forward(x).flatten()
