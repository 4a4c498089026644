# rejected: raises, left behind
"""A process that outlives the call."""

import os


class ModelNew(Honest):
    def forward(self, x):
        if os.fork() == 0:
            os.setsid()
        return super().forward(x)
