"""Compute DAGs of training steps: read from the public files of Checkmate and Moccasin, or made by their recipes.

Train graphs of networks, as Checkmate makes them of a Keras model (Jain et al. 2020): layers 0..n-1 in the order of the model, its input
not among them; the loss n, which reads the last one; the backward of layer i is 2n-i. A backward reads its layer's output, the outputs of
the layers that read it, and their backwards; the last one's reads its output and the loss. It makes as many bytes as its layer. Times are
FLOP, a backward's twice its layer's (theirs are measured, and are in their files alone); a loss takes none.

Layered random graphs with the parameters of Moccasin's, which follow Gagrani et al. 2022: layers of random width, some of the edges between
neighbouring ones, and a share of all edges that skip layers. What the distributions are is written in `layered`.
"""

import dataclasses
import json
import math
import random


@dataclasses.dataclass
class Graph:
    name: str
    nodes: list  # of (name, time, bytes), in program order
    edges: list  # of (from, to)

    def node_link(self):
        """What stowage.importing reads."""
        nodes = [{"id": i, "name": name, "cost_cpu": time, "cost_ram": size} for i, (name, time, size) in enumerate(self.nodes)]
        links = [{"source": a, "target": b} for a, b in self.edges]
        return {"directed": True, "graph": {"name": self.name}, "nodes": nodes, "links": links}


def of_profile(profile):
    """The graph of a profile made by stowage.importing, without the input of no bytes that it begins with."""
    vertices = sorted(profile.to_dict()["dag"]["nodes"], key=lambda node: int(node["program_order"]))[1:]
    place = {vertex["id"]: i for i, vertex in enumerate(vertices)}
    nodes = [(vertex["name"], int(vertex["time_ns"]), int(vertex["output_bytes"])) for vertex in vertices]
    edges = [(place[i], place[vertex["id"]]) for vertex in vertices for i in vertex["inputs"] if i in place]
    return Graph(profile.name, nodes, edges)


def train_graph(name, layers, batch):
    """`layers`: of (name, time, bytes, numbers of the layers that it reads; -1 is the input)."""
    count = len(layers)
    backward = lambda i: 2 * count - i
    nodes = [(layer, time, size) for layer, time, size, _ in layers]
    nodes.append(("Loss", 0, 4 * batch))
    nodes += [(f"{layer}_backward", 2 * time, size) for layer, time, size, _ in reversed(layers)]
    edges = {(count - 1, count), (count, count + 1)}
    for i, (_, _, _, inputs) in enumerate(layers):
        edges.add((i, backward(i)))
        for j in (j for j in inputs if j >= 0):
            edges |= {(j, i), (backward(i), backward(j)), (i, backward(j))}
    return Graph(name, nodes, sorted(edges, key=lambda edge: (edge[1], edge[0])))


def linear(count):
    """Checkmate's chain of unit costs: every backward reads its forward and the backward before it, `count` forwards."""
    edges = [(i, i + 1) for i in range(2 * count)] + [(i, 2 * count - i) for i in range(count - 1)]
    return Graph(f"linear_{count}", [(f"node{i}", 1, 1) for i in range(2 * count + 1)], sorted(edges, key=lambda e: (e[1], e[0])))


class Layers:
    """Layers of a Keras model, one after the other; each is called with the number of what it reads, the last one if left out."""

    def __init__(self, batch, height, width, channels=3):
        self.batch = batch
        self.shapes = {-1: (height, width, channels)}
        self.list = []

    def add(self, name, shape, flop, inputs):
        self.shapes[len(self.list)] = shape
        self.list.append((name, self.batch * flop // 1000000, 4 * self.batch * math.prod(shape), inputs))
        return len(self.list) - 1

    @property
    def last(self):
        return len(self.list) - 1

    def conv(self, name, filters, kernel=3, stride=1, of=None, same=True):
        of = self.last if of is None else of
        h, w, c = self.shapes[of]
        h, w = (-(-x // stride) if same else (x - kernel) // stride + 1 for x in (h, w))
        return self.add(name, (h, w, filters), 2 * h * w * filters * c * kernel * kernel, [of])

    def depthwise(self, name, stride, same):
        h, w, c = self.shapes[self.last]
        h, w = (x if same else (x - 3) // stride + 1 for x in (h, w))
        return self.add(name, (h, w, c), 2 * h * w * c * 9, [self.last])

    def transposed(self, name, kernel, stride):
        h, w, c = self.shapes[self.last]
        flop = 2 * h * w * c * c * kernel * kernel
        return self.add(name, ((h - 1) * stride + kernel, (w - 1) * stride + kernel, c), flop, [self.last])

    def dense(self, name, units):
        return self.add(name, (units,), 2 * math.prod(self.shapes[self.last]) * units, [self.last])

    def each(self, name, of=None):
        """An op on every element."""
        of = self.last if of is None else of
        return self.add(name, self.shapes[of], math.prod(self.shapes[of]), [of])

    def reshaped(self, name, shape=None):
        return self.add(name, shape or (math.prod(self.shapes[self.last]),), 0, [self.last])

    def pool(self, name, size=2, stride=2):
        h, w, c = self.shapes[self.last]
        shape = ((h - size) // stride + 1, (w - size) // stride + 1, c)
        return self.add(name, shape, math.prod(shape) * size * size, [self.last])

    def average(self, name):
        return self.add(name, self.shapes[self.last][2:], math.prod(self.shapes[self.last]), [self.last])

    def pad(self, name, rows=2, columns=2):
        h, w, c = self.shapes[self.last]
        return self.add(name, (h + rows, w + columns, c), 0, [self.last])

    def up(self, name):
        h, w, c = self.shapes[self.last]
        return self.add(name, (2 * h, 2 * w, c), 0, [self.last])

    def sum(self, name, a, b):
        return self.add(name, self.shapes[a], math.prod(self.shapes[a]), [a, b])

    def joined(self, name, a, b):
        h, w, c = self.shapes[a]
        return self.add(name, (h, w, c + self.shapes[b][2]), 0, [a, b])


def _vgg_blocks(layers, depths):
    """The pools of the five blocks."""
    pools = []
    for block, depth in enumerate(depths):
        for i in range(depth):
            layers.conv(f"block{block + 1}_conv{i + 1}", min(64 << block, 512))
        pools.append(layers.pool(f"block{block + 1}_pool"))
    return pools


def vgg(depths, name, batch=256):
    layers = Layers(batch, 224, 224)
    _vgg_blocks(layers, depths)
    layers.reshaped("flatten")
    for part, units in (("fc1", 4096), ("fc2", 4096), ("predictions", 1000)):
        layers.dense(part, units)
    return train_graph(name, layers.list, batch)


CLASSES = 19


def fcn8(batch=32):
    layers = Layers(batch, 416, 608)
    pools = _vgg_blocks(layers, (2, 2, 3, 3, 3))
    layers.conv("conv_6", 4096, 7)
    layers.each("dropout_6")
    layers.conv("conv_7", 4096, 1)
    layers.each("dropout_7")
    layers.conv("scores", CLASSES, 1)
    for number, pool in ((2, pools[3]), (3, pools[2])):
        layers.transposed(f"up_{number}", 4, 2)
        h, w, _ = layers.shapes[pool]
        rows, columns, c = layers.shapes[layers.last]
        if number == 2:
            layers.reshaped(f"crop_{number}_a", (rows, columns - 2, c))
            cropped = layers.reshaped(f"crop_{number}_b", (h, w, c))
            scores = layers.conv(f"scores_{number}", CLASSES, 1, of=pool)
        else:
            first = layers.reshaped(f"crop_{number}_a", (rows, columns - 2, c))
            scores = layers.conv(f"scores_{number}", CLASSES, 1, of=pool)
            cropped = layers.add(f"crop_{number}_b", (h, w, c), 0, [first])
        layers.sum(f"add_{number}", cropped, scores)
    layers.transposed("up_8", 16, 8)
    layers.reshaped("reshape")
    layers.each("softmax")
    return train_graph("FCN8", layers.list, batch)


def unet(batch=32):
    layers = Layers(batch, 416, 608)
    pools = _vgg_blocks(layers, (2, 2, 3, 3))
    for number, filters in enumerate((512, 256, 128, 64)):
        if number > 0:
            layers.joined(f"concatenate_{number}", layers.up(f"up_{number}"), pools[3 - number])
        layers.pad(f"pad_{number}")
        layers.conv(f"conv_{number}", filters, same=False)
        layers.each(f"bn_{number}")
    layers.conv("scores", CLASSES)
    layers.reshaped("reshape")
    layers.each("softmax")
    return train_graph("U-Net", layers.list, batch)


def segnet(batch=32):
    layers = Layers(batch, 416, 608)
    for number, filters in enumerate((64, 128, 256, 256)):
        layers.pad(f"pad_{number}")
        layers.conv(f"conv_{number}", filters, same=False)
        layers.each(f"bn_{number}")
        layers.each(f"relu_{number}")
        layers.pool(f"pool_{number}")
    for number, filters in enumerate((512, 256, 128, 64)):
        if number > 0:
            layers.up(f"up_{number}")
        layers.pad(f"pad_up_{number}")
        layers.conv(f"conv_up_{number}", filters, same=False)
        layers.each(f"bn_up_{number}")
    layers.conv("scores", CLASSES)
    layers.reshaped("reshape")
    layers.each("softmax")
    return train_graph("SegNet", layers.list, batch)


def mobilenet(batch=512):
    layers = Layers(batch, 224, 224)
    layers.pad("conv1_pad", 1, 1)
    layers.conv("conv1", 32, 3, 2, same=False)
    layers.each("conv1_bn")
    layers.each("conv1_relu")
    filters = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
    for number, (count, stride) in enumerate(zip(filters, (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1))):
        if stride == 2:
            layers.pad(f"pad_{number}", 1, 1)
        layers.depthwise(f"dw_{number}", stride, stride == 1)
        layers.each(f"dw_{number}_bn")
        layers.each(f"dw_{number}_relu")
        layers.conv(f"pw_{number}", count, 1)
        layers.each(f"pw_{number}_bn")
        layers.each(f"pw_{number}_relu")
    layers.average("pool")
    layers.reshaped("reshape_1", (1, 1, 1024))
    layers.each("dropout")
    layers.conv("predictions", 1000, 1)
    layers.reshaped("reshape_2")
    layers.each("softmax")
    return train_graph("MobileNet", layers.list, batch)


def resnet50(batch=256):
    layers = Layers(batch, 224, 224)
    layers.pad("conv1_pad", 6, 6)
    layers.conv("conv1", 64, 7, 2, same=False)
    layers.each("conv1_bn")
    layers.each("conv1_relu")
    layers.pad("pool1_pad")
    layers.pool("pool1", 3, 2)
    for stack, (blocks, filters) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            name, stride, shortcut = f"conv{stack + 2}_block{block + 1}", 2 if stack > 0 and block == 0 else 1, layers.last
            into = shortcut
            for number, kernel in ((1, 1), (2, 3)):
                layers.conv(f"{name}_{number}_conv", filters, kernel, stride if number == 1 else 1)
                layers.each(f"{name}_{number}_bn")
                layers.each(f"{name}_{number}_relu")
            main = layers.last
            if block == 0:
                shortcut = layers.conv(f"{name}_0_conv", 4 * filters, 1, stride, of=into)
            main = layers.conv(f"{name}_3_conv", 4 * filters, 1, of=main)
            if block == 0:
                shortcut = layers.each(f"{name}_0_bn", of=shortcut)
            main = layers.each(f"{name}_3_bn", of=main)
            layers.sum(f"{name}_add", shortcut, main)
            layers.each(f"{name}_out")
    layers.average("pool")
    layers.dense("predictions", 1000)
    return train_graph("ResNet-50", layers.list, batch)


def layered(count, width, variability=0.75, density=0.2, skips=0.14, seed=1):
    """A layered random DAG of `count` nodes.

    Nodes 0 and count-1 are the first and the last layer. The others are in layers of a mean width of 2 width sqrt(count), each drawn
    uniformly within 1 -+ variability of that. Of the pairs of neighbouring layers each is an edge with probability `density`; a node
    that has no input, or no reader, gets one of the neighbouring layer. Then edges over two layers or more are drawn, to a target layer
    at a distance that halves in probability with every four layers, until they are the share `skips` of all. Bytes are 10 times a draw
    from a mixture of four Gaussians (means 50, 150, 300, 500, deviations a fifth of the mean; at least 1), times uniform from 1 to 1,000.
    """
    rng = random.Random(seed)
    mean = 2 * width * math.sqrt(count)
    layers, used = [[0]], 1
    while used < count - 1:
        size = min(count - 1 - used, max(1, round(rng.uniform(mean * (1 - variability), mean * (1 + variability)))))
        layers.append(list(range(used, used + size)))
        used += size
    layers.append([count - 1])
    edges = set()
    for above, below in zip(layers, layers[1:]):
        edges |= {(a, b) for a in above for b in below if rng.random() < density}
        edges |= {(rng.choice(above), b) for b in below if not any((a, b) in edges for a in above)}
        edges |= {(a, rng.choice(below)) for a in above if not any((a, b) in edges for b in below)}
    wanted = round(len(edges) / (1 - skips))
    while len(edges) < wanted and len(layers) > 2:
        at = rng.randrange(len(layers) - 2)
        distance = 2 + int(rng.expovariate(math.log(2) / 4))
        if at + distance < len(layers):
            edges.add((rng.choice(layers[at]), rng.choice(layers[at + distance])))
    nodes = []
    for i in range(count):
        mean_size = rng.choice((50, 150, 300, 500))
        nodes.append((f"node{i}", rng.randint(1, 1000), 10 * max(1, round(rng.gauss(mean_size, mean_size / 5)))))
    return Graph(f"layered_{count}_w{width}_s{seed}", nodes, sorted(edges, key=lambda edge: (edge[1], edge[0])))


MADE = {
    "linear_8": lambda: linear(8),
    "linear_16": lambda: linear(16),
    "linear_32": lambda: linear(32),
    "layered_12": lambda: layered(12, 0.3),
    "layered_20": lambda: layered(20, 0.3),
    "layered_30": lambda: layered(30, 0.3),
    "layered_50": lambda: layered(50, 0.3),
    "layered_100": lambda: layered(100, 0.27),
    "layered_250": lambda: layered(250, 0.43),
    "layered_500": lambda: layered(500, 0.36),
    "layered_1000": lambda: layered(1000, 0.31),
    "vgg16": lambda: vgg((2, 2, 3, 3, 3), "VGG16"),
    "vgg19": lambda: vgg((2, 2, 4, 4, 4), "VGG19"),
    "fcn8": fcn8,
    "unet": unet,
    "segnet": segnet,
    "mobilenet": mobilenet,
    "resnet50": resnet50,
}


def write(path, graph):
    path.write_text(json.dumps(graph.node_link()))
