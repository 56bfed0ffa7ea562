// Holds the precompiled header of <torch/torch.h>; every target that includes LibTorch reuses it.
