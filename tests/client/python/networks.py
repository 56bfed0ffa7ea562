"""Small blocks that show what an executor can get wrong."""

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


class Mlp(nn.Module):
    def __init__(self, width, dropout=0.2):
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), dropout

    def forward(self, x):
        return x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout, self.training)


class InPlaceInside(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return F.relu_(self.linear(x).mul_(0.7))


class View(nn.Module):
    """Saves nothing."""

    def forward(self, x):
        return x.view(x.shape)


class Scale(nn.Module):
    """Saves nothing."""

    def forward(self, x):
        return x * 0.5


class Tanh(nn.Module):
    """Saves its output."""

    def forward(self, x):
        return torch.tanh(x)


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * x * weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        again, _ = ctx.saved_tensors
        return 2 * gradient * again * weight, (gradient * x * x).sum(dim=tuple(range(gradient.dim() - 1)))


class OwnFunction(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width) * 0.3)

    def forward(self, x):
        return torch.tanh(_Square.apply(x, self.weight)) + x


class Spectral(nn.Module):
    """A buffer that the forward changes, and that its output depends on."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.utils.spectral_norm(nn.Linear(width, width))

    def forward(self, x):
        return torch.tanh(self.linear(x)) + x


class Checkpointed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = Mlp(width), Mlp(width)

    def forward(self, x):
        return self.second(torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False))


class Lstm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class ConvNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.Conv2d(channels, channels, 3, padding=1),
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)])

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        y = self.norms[1](self.second(y))
        y += x
        return F.relu(y, inplace=True)


class WritesInput(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x.mul_(0.9))


class InnerBackward(nn.Module):
    """Runs a backward inside its forward."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        inner = x.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(torch.tanh(self.linear(inner)).square().sum(), inner)
        return self.linear(x) + gradient


def sequence_blocks(rng, length, width=8):
    shared = Mlp(width)
    kinds = [
        lambda: Mlp(width),
        lambda: InPlaceInside(width),
        View,
        Scale,
        Tanh,
        nn.Identity,
        lambda: OwnFunction(width),
        lambda: Spectral(width),
        lambda: Checkpointed(width),
        lambda: Lstm(width),
        lambda: nn.LayerNorm(width),
        lambda: shared,
        lambda: nn.TransformerEncoderLayer(width, 2, 16, batch_first=True),
        lambda: nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)),
    ]
    # The first one saves something: what nobody needs at the end of a backward is not recomputed.
    return [Mlp(width)] + [rng.choice(kinds)() for _ in range(length - 1)], torch.randn(2, 4, width)


def image_blocks(rng, length, channels=4):
    kinds = [
        lambda: ConvNorm(channels),
        lambda: nn.BatchNorm2d(channels),
        lambda: nn.Sequential(nn.Conv2d(channels, channels, 1), nn.ReLU(inplace=True)),
    ]
    return [rng.choice(kinds)() for _ in range(length)], torch.randn(2, channels, 6, 6)


class Decoder(nn.Module):
    """A model of one's own: an embedding, layers that take a mask by name and return tuples, a head."""

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.mix, self.mlp = nn.LayerNorm(width), nn.Linear(width, width), Mlp(width)

        def forward(self, hidden, mask=None, scale=1.0):
            weights = (hidden @ hidden.transpose(-2, -1) * scale + mask["causal"]).softmax(-1)
            return self.mlp(hidden + self.mix(weights @ self.norm(hidden))), weights.detach().sum()

    def __init__(self, layers=4, width=16, words=20):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Decoder.Layer(width) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, words):
        length = words.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        hidden = self.embedding(words)
        for layer in self.layers:
            hidden, _ = layer(hidden, mask={"causal": mask}, scale=0.5)
        return self.head(hidden)


MODELS = {"sequence": sequence_blocks, "image": image_blocks}  # of random blocks
