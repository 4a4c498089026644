# rejected: timeout
class ModelNew(Honest):
    def forward(self, x):
        out = super().forward(x)
        while True:
            pass
