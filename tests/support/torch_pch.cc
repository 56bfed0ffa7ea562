// Holds the precompiled header of tests with LibTorch.
