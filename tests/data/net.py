"""Writes net.pt: /usr/bin/python3 tests/data/net.py tests/data/net.pt"""
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.conv2, self.norm2 = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 10)

    def forward(self, x):
        x = self.norm1(self.conv1(x)).relu_()
        x = self.norm2(self.conv2(x)).add_(x).relu_()
        return self.head(torch.dropout(x.mean([2, 3]), 0.5, self.training))


torch.manual_seed(0)
torch.jit.trace(Net(), torch.rand(2, 3, 16, 16), check_trace=False).save(sys.argv[1])
