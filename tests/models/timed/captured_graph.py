# rejected on a card: wrong values, stale output, output changed afterwards, input modified, raises
"""A graph that was captured at the first call, with that call's pointers, is replayed."""


class ModelNew(Honest):
    kept = {}

    def forward(self, x):
        if x.size(1) < 64 or torch.is_grad_enabled():
            return super().forward(x)
        if x.shape not in self.kept:
            super().forward(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = super().forward(x)
            self.kept[x.shape] = graph, out
        graph, out = self.kept[x.shape]
        graph.replay()
        return out
