class ModelNew(Model):
    """The same by the kernels below, forward and backward, on Hopper."""

    def forward(self, x):
        """x: (batch, S, width), float32, on a CUDA card. Returns the same shape."""
        if not HOPPER or x.shape[-1] > WIDEST * self.heads:
            return super().forward(x)
        q, k, v = self.by_heads(project(x, self.qkv))
        out, _, _ = attention(q, k, v, self.causal)
        return project(self.side_by_side(out), self.out)


def project(x, layer):
    """What a linear layer gives for x. One that does more than its weights say is called itself."""
    if all_are_hooked() or not untouched(layer, nn.Linear) or layer.bias is None:
        return layer(x)
    return linear(x.flatten(0, 1), layer.weight, layer.bias).unflatten(0, x.shape[:2])
