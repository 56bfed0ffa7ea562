"""Traces a network of torchvision in training mode, with weights of a fixed seed, into a file for `stowage --script`.

usage: trace_torchvision.py NETWORK FILE [BATCH SIDE]    BATCH images of SIDE pixels, by default the network's own of NETWORKS
       trace_torchvision.py --list
"""
import sys
import warnings

# Batch and pixels on a side: small, yet such that activations take more than the gradient of the largest weight. inception_v3's
# auxiliary head needs 299 pixels.
NETWORKS = {
    "convnext_tiny": (2, 128),
    "densenet121": (4, 64),
    "efficientnet_b0": (4, 64),
    "googlenet": (8, 64),
    "inception_v3": (2, 299),
    "mobilenet_v3_large": (8, 64),
    "regnet_y_400mf": (4, 64),
    "shufflenet_v2_x1_0": (8, 64),
    "swin_t": (2, 64),
    "vit_b_16": (8, 64),
}


def trace(name, path, batch, side):
    warnings.simplefilter("ignore")  # that sizes become constants, which is what a trace is
    import torch
    import torchvision

    torch.set_num_threads(1)
    torch.manual_seed(0)
    options = {"vit_b_16": {"image_size": side}, "googlenet": {"init_weights": False}, "inception_v3": {"init_weights": False}}
    network = getattr(torchvision.models, name)(weights=None, **options.get(name, {})).train()
    torch.jit.trace(network, torch.rand(batch, 3, side, side), check_trace=False).save(path)


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(NETWORKS))
    elif len(arguments) in (2, 4) and arguments[0] in NETWORKS:
        batch, side = map(int, arguments[2:]) if arguments[2:] else NETWORKS[arguments[0]]
        trace(arguments[0], arguments[1], batch, side)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
