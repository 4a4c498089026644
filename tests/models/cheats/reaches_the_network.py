# rejected: raises
import socket


class ModelNew(Honest):
    def forward(self, x):
        socket.create_connection(("127.0.0.1", 80), 1)
        return super().forward(x)
