# passes
class ModelNew(Honest):
    def forward(self, x):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            out = super().forward(x)
        torch.cuda.current_stream().wait_stream(stream)
        return out
