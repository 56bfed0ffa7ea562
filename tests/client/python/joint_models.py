"""Models whose joint graphs are planned, with a batch for each; and the models of Transformers and torchvision, where these are
installed."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

import pytest
import torch
from torch.nn import functional


class Case(NamedTuple):
    """A model whose first output is a loss, and what it is called with."""

    model: torch.nn.Module
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]


class WithLoss(torch.nn.Module):
    def __init__(self, body: torch.nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).square().mean()


class Attention(torch.nn.Module):
    """A residual block of attention: views, a split, a softmax, dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = torch.nn.LayerNorm(width), heads
        self.inner, self.outer = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.inner(self.norm(x)).split(width, dim=2)
        q, k, v = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        weights = self.dropout(functional.softmax(q @ k.transpose(2, 3) * width**-0.5, dim=-1))
        return x + self.dropout(self.outer((weights @ v).transpose(1, 2).reshape(batch, length, width)))


def mlp(depth: int = 4) -> Case:
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(depth)]
    return Case(WithLoss(torch.nn.Sequential(*layers)), (torch.randn(256, 64),), {})


def attention(blocks: int = 3) -> Case:
    return Case(WithLoss(torch.nn.Sequential(*[Attention(32, 4) for _ in range(blocks)])), (torch.randn(8, 32, 32),), {})


def convolutions() -> Case:
    """Batch normalisation, which writes its statistics, and pooling, which returns two large tensors."""
    layers = [
        torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()) for _ in range(4)
    ]
    return Case(
        WithLoss(torch.nn.Sequential(*layers, torch.nn.MaxPool2d(2), torch.nn.Flatten())), (torch.randn(4, 8, 24, 24),), {}
    )


def gpt2(
    layers: int = 2, width: int = 64, vocabulary: int = 256, batch: int = 4, length: int = 64, dropout: float = 0.1
) -> Case:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=4,
        vocab_size=vocabulary,
        n_positions=length,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
        attn_pdrop=dropout,
        embd_pdrop=dropout,
        resid_pdrop=dropout,
    )
    ids = torch.randint(vocabulary, (batch, length))
    model = transformers.GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # else a warning is logged, which breaks the graph
    return Case(model, (), {"input_ids": ids, "labels": ids})


def resnet50(batch: int = 2, size: int = 64) -> Case:
    torchvision = pytest.importorskip("torchvision")
    return Case(WithLoss(torchvision.models.resnet50()), (torch.randn(batch, 3, size, size),), {})


SMALL: Dict[str, Callable[[], Case]] = {
    "mlp": mlp,
    "attention": attention,
    "convolutions": convolutions,
    "gpt2": lambda: gpt2(1),
}
