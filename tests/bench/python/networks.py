"""The networks that Python benches train: random weights, inputs of their own, one call that gives the loss."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Optional

import torch


@dataclasses.dataclass
class Network:
    """A model in training mode; ``loss(model)`` is a forward. ``blocks`` as of stowage.wrap."""

    name: str
    model: torch.nn.Module
    loss: Callable[[torch.nn.Module], torch.Tensor]
    blocks: Optional[str] = None
    # The blocks by the model, for those who wrap each of them.
    block_list: Callable[[torch.nn.Module], List[torch.nn.Module]] = lambda model: []
    # What a Sequential is given, for those who measure it themselves.
    line_input: Optional[torch.Tensor] = None


def _gpt2(layers: int) -> Network:
    import transformers

    config = transformers.GPT2Config(n_layer=layers, n_embd=384, n_head=6, vocab_size=8192, n_positions=256)
    words = torch.randint(0, 8192, (4, 256))
    return Network(
        f"GPT-2, {layers} layers",
        transformers.GPT2LMHeadModel(config).train(),
        lambda model: model(input_ids=words, labels=words, use_cache=False).loss,
        "transformer.h",
        lambda model: list(model.transformer.h),
    )


def _vit() -> Network:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536, image_size=128, num_labels=100
    )
    images, labels = torch.randn(8, 3, 128, 128), torch.randint(0, 100, (8,))
    model = transformers.ViTForImageClassification(config).train()
    name = next(n for n, m in model.named_modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 8)
    return Network(
        "ViT, 8 layers",
        model,
        lambda model: model(pixel_values=images, labels=labels).loss,
        name,
        lambda model: list(model.get_submodule(name)),
    )


def _resnet50() -> Network:
    import torchvision

    net = torchvision.models.resnet50()
    stem = torch.nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool)
    head = torch.nn.Sequential(net.avgpool, torch.nn.Flatten(), net.fc)
    line = torch.nn.Sequential(stem, *net.layer1, *net.layer2, *net.layer3, *net.layer4, head).train()
    images, labels = torch.randn(8, 3, 128, 128), torch.randint(0, 1000, (8,))
    return Network(
        "ResNet-50, 18 stages",
        line,
        lambda model: torch.nn.functional.cross_entropy(model(images), labels),
        None,
        lambda model: list(model)[1:-1],
        images,
    )


def _convolutions() -> Network:
    """Small, and of PyTorch alone."""

    def block(before: int, after: int) -> torch.nn.Module:
        first = torch.nn.Conv2d(before, after, 3, padding=1)
        return torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Conv2d(after, after, 3, padding=1), torch.nn.ReLU())

    line = torch.nn.Sequential(block(3, 16), *[block(16, 16) for _ in range(6)], block(16, 1))
    images = torch.randn(4, 3, 64, 64)
    return Network(
        "convolutions, 8 blocks",
        line,
        lambda model: model(images).square().mean(),
        None,
        lambda model: list(model),
        images,
    )


NETWORKS: Dict[str, Callable[[], Network]] = {
    "gpt2": lambda: _gpt2(8),
    "vit": _vit,
    "resnet50": _resnet50,
    "convolutions": _convolutions,
}


def make(name: str) -> Network:
    torch.manual_seed(0)
    return NETWORKS[name]()


def is_in_line(network: Network) -> bool:
    """Whether checkpoint_sequential takes it."""
    return isinstance(network.model, torch.nn.Sequential)


def missing(name: str) -> Any:
    """The package that is not here, or None."""
    try:
        make(name)
    except ImportError as error:
        return error.name
    return None
