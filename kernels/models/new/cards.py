CARDS = sorted({torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())})
HOPPER = CARDS == [(9, 0)]  # tensor cores as these kernels use them: of no other card
