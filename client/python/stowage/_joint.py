"""Joint graphs of AOTAutograd, forward and backward of a step in one, as compute DAGs.

What is there before the step (parameters, buffers, the batch) has no bytes here. What the forward returns, gradients of
parameters and gradients that come from outside are held to the end of the step.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

import torch
from torch import fx
from torch.utils import _pytree as pytree

from stowage._op_costs import OpCost, Roofline, Times, costs_of, hint, tensors_of
from stowage.planning import Profile

_SMALL = 8  # an output is small if it is at most this part of all that its op returns
_HELD = {"must_keep": True, "result": True}
_BATCH_NORM = ("_native_batch_norm_legit_functional", "_batch_norm_with_update_functional")


class Step(NamedTuple):
    """What a vertex of the DAG stands for."""

    # "op"; "part": one of the tensors that an op returns; "token": an op with an effect has run; "boundary": the forward has
    # ended; "tangent": a gradient from outside; "start": all of these are there; "step": what is there before
    kind: str
    node: Optional[fx.Node]


def is_symbol(node: fx.Node) -> bool:
    """Whether it is a number: a size, say."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def is_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def outputs_of(graph: fx.Graph) -> List[Any]:
    return list(pytree.arg_tree_leaves(*graph.output_node().args))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def storage_bytes(tensor: torch.Tensor) -> int:
    """Rounded up to what the caching allocator of CUDA hands out."""
    size = hint(tensor.untyped_storage().nbytes())
    return -(-size // 512) * 512 if tensor.device.type == "cuda" else size


def is_random(node: fx.Node) -> bool:
    """Whether it draws from a generator: a second run would draw other numbers."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    for position, argument in enumerate(target._schema.arguments):
        if argument.name == "dropout_p":
            return bool(
                node.args[position] if position < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            )
    return True


def is_dropout(node: fx.Node) -> bool:
    """Whether its output follows from its input and its mask: with the mask kept, it is made again without a draw."""
    return node.target is torch.ops.aten.native_dropout.default and bool(node.args[2])


class JointGraph:
    """A joint graph with what planning needs to know of its nodes.

    ``vertices`` are the nodes of the DAG with the names of the contract's JSON mapping, in program order; ``steps[i]`` says
    what vertices[i] stands for.
    """

    def __init__(self, module: fx.GraphModule, forward_outputs: int, times: Times) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.forward_count = forward_outputs
        outputs = outputs_of(module.graph)
        self.forward_outputs = [o for o in outputs[:forward_outputs] if isinstance(o, fx.Node)]
        self.backward_outputs = [o for o in outputs[forward_outputs:] if isinstance(o, fx.Node)]
        self.late = _late_nodes(self.nodes)
        self.backward = _backward_nodes(self.nodes, self.late, set(self.forward_outputs))
        self.base = _bases(self.nodes)
        self.effects = {n for n in self.nodes if n not in self.late and _has_effect(n)}
        self.once = {n for n in self.nodes if self._runs_once(n)} | _readers_of_written(self.nodes)
        self.costs = costs_of([n for n in self.nodes if n.op == "call_function" and self._is_op(n)], times)
        self.vertices: List[Dict[str, Any]] = []
        self.steps: List[Step] = []
        self._ids: Dict[fx.Node, int] = {}
        self._add_vertices()

    def profile(self, name: str, times: Times) -> Profile:
        """The compute DAG. Raises InvalidArgument where it breaks a rule of profiles."""
        source = "COST_SOURCE_MODELLED" if isinstance(times, Roofline) else "COST_SOURCE_MEASURED"
        device = next((t.device for n in self.nodes for t in tensors_of(n.meta.get("val"))), torch.device("cpu"))
        model = torch.cuda.get_device_name(device) if device.type == "cuda" and torch.cuda.is_available() else device.type
        return Profile.from_dict(
            {
                "name": name,
                "device": {"model": model, "framework": f"torch {torch.__version__}"},
                "cost_source": source,
                "dag": {"nodes": self.vertices},
            }
        )

    def cost(self, node: fx.Node) -> OpCost:
        return self.costs.get(node, OpCost(0, 0))

    def parts(self, node: fx.Node) -> List[fx.Node]:
        """Of an op that returns several tensors, those that are read, one node for each."""
        parts: Dict[int, fx.Node] = {}
        for user in node.users:
            if user.target is operator.getitem and isinstance(user.meta.get("val"), torch.Tensor):
                parts.setdefault(int(user.args[1]), user)
        return list(parts.values())

    def maker(self, node: fx.Node) -> fx.Node:
        """The op that makes a tensor that is no view."""
        return node.args[0] if node.target is operator.getitem and isinstance(node.args[0], fx.Node) else node

    def owned_bytes(self, node: fx.Node) -> int:
        """Of what an op makes: its tensor, or all that is read of what it returns."""
        if node.op == "placeholder":
            return storage_bytes(node.meta["val"]) if is_tangent(node) else 0
        if node.op != "call_function" or node in self.base or self.writes_into(node) is not None:
            return 0
        value = node.meta.get("val")
        return storage_bytes(value) if isinstance(value, torch.Tensor) else 0

    def writes_into(self, node: fx.Node) -> Optional[fx.Node]:
        """What a node that writes in place writes over."""
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
            return None
        return node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None

    def separate_parts(self, node: fx.Node) -> List[fx.Node]:
        """The parts that are held and dropped by themselves: all but the largest of an op that never runs again, the small
        ones of another; those are held from the first run to their last use."""
        parts = [p for p in self.parts(node) if p not in self.base]
        if not parts:
            return []
        sizes = {p: storage_bytes(p.meta["val"]) for p in parts}
        if node in self.once:
            return sorted(parts, key=lambda p: sizes[p])[:-1]
        if is_dropout(node):
            return [p for p in parts if p.args[1] == 1]
        return [p for p in parts if sizes[p] * _SMALL <= sum(sizes.values())]

    def unread_bytes(self, node: fx.Node) -> int:
        """Of tensors that an op returns and nobody reads."""
        value = node.meta.get("val")
        if not isinstance(value, (tuple, list)):
            return 0
        read = {_storage(p.meta["val"]) for p in self.parts(node)}
        given = {_storage(t) for n in node.all_input_nodes for t in tensors_of(n.meta.get("val"))}
        unread = {_storage(t): storage_bytes(t) for t in tensors_of(value) if _storage(t) not in read | given}
        return sum(unread.values())

    def _runs_once(self, node: fx.Node) -> bool:
        return node in self.late or _must_keep(node) or (node in self.effects and not is_dropout(node))

    def _is_op(self, node: fx.Node) -> bool:
        return node not in self.base and not is_symbol(node) and node.target is not operator.getitem

    def _add(self, step: Step, name: str, kind: str, inputs: Sequence[int], **fields: Any) -> int:
        number = len(self.vertices)
        vertex = {"id": number, "program_order": number, "name": name[-256:], "op_kind": kind[-256:], **fields}
        self.vertices.append({**vertex, "inputs": list(dict.fromkeys(inputs))})
        self.steps.append(step)
        return number

    def owner(self, node: fx.Node) -> fx.Node:
        """The node in whose storage a node's tensor lies."""
        while node in self.base:
            node = self.base[node]
        return node

    def _inputs(self, node: fx.Node) -> List[int]:
        """Those that are there before the step need no vertices of their own: who reads them alone reads the step."""
        return [self._ids[owner] for n in node.all_input_nodes if (owner := self.owner(n)) in self._ids] or [self._root]

    def _add_vertices(self) -> None:
        results = {self.owner(n) for n in (*self.forward_outputs, *self.backward_outputs)}
        self._root = self._add(Step("step", None), "step", "step", [])
        tokens: List[int] = []
        for node in self.nodes:
            if node.op == "call_function" and node not in self.backward:
                tokens += self._add_node(node, results)
        kept = [self._ids[owner] for n in self.forward_outputs if (owner := self.owner(n)) in self._ids]
        self._boundary = self._add(
            Step("boundary", None), "boundary", "boundary", [*kept, *tokens] or [self._root], must_keep=True
        )
        # They come all at once, when the backward starts.
        tangents = [node for node in self.nodes if is_tangent(node) and isinstance(node.meta.get("val"), torch.Tensor)]
        given = [
            self._add(
                Step("tangent", node), node.name, "tangent", [self._boundary], output_bytes=self.owned_bytes(node), **_HELD
            )
            for node in tangents
        ]
        start = self._add(Step("start", None), "start", "start", given or [self._boundary], must_keep=True)
        self._ids.update(dict.fromkeys(tangents, start))
        for node in self.nodes:
            if node.op == "call_function" and node in self.backward:
                self._add_node(node, results)

    def _add_node(self, node: fx.Node, results: Set[fx.Node]) -> List[int]:
        """Adds what an op makes; returns what must have run when the forward ends."""
        if not self._is_op(node):
            return []
        kind, inputs, cost = str(node.target), self._inputs(node), self.cost(node)
        if node in self.backward and self.writes_into(node) is not None:
            inputs.append(self._boundary)
        parts = self.separate_parts(node)
        for part in parts:
            fields = {"output_bytes": storage_bytes(part.meta["val"]), "must_keep": True, "result": part in results}
            self._ids[part] = self._add(Step("part", part), part.name, f"{kind}[{part.args[1]}]", inputs, **fields)
        own = [p for p in self.parts(node) if p not in parts and p not in self.base]
        vertex = self._add(
            Step("op", node),
            node.name,
            kind,
            [*inputs, *(self._ids[p] for p in parts)],
            output_bytes=self.owned_bytes(node) + sum(storage_bytes(p.meta["val"]) for p in own),
            time_ns=cost.time_ns,
            workspace_bytes=cost.workspace_bytes + self.unread_bytes(node),
            must_keep=node in self.once,
            random=is_random(node),
            collective=_is_collective(node),
            result=node in results or any(p in results for p in own),
        )
        self._ids.update(dict.fromkeys([node, *own], vertex))
        if node not in self.effects:
            return []
        return [self._add(Step("token", None), node.name, "ran", [vertex], must_keep=True)]


def _late_nodes(nodes: Sequence[fx.Node]) -> Set[fx.Node]:
    """What depends on gradients from outside, these among them."""
    late: Set[fx.Node] = set()
    for node in nodes:
        if is_tangent(node) or any(n in late for n in node.all_input_nodes):
            late.add(node)
    return late


def _backward_nodes(nodes: Sequence[fx.Node], late: Set[fx.Node], forward_outputs: Set[fx.Node]) -> Set[fx.Node]:
    """What the program runs after its forward: what is late, tagged so, or read by such nodes alone."""
    backward: Set[fx.Node] = set()
    for node in reversed(nodes):
        tag = node.meta.get("partitioner_tag")
        users = [user for user in node.users if user.op != "output"]
        if node in late or node.op == "output":
            backward.add(node)
        elif node.op in ("placeholder", "get_attr") or node in forward_outputs or any(user not in backward for user in users):
            continue
        elif tag in ("is_backward", "must_be_in_backward") or (tag is None and users):
            backward.add(node)
    return backward


def _bases(nodes: Sequence[fx.Node]) -> Dict[fx.Node, fx.Node]:
    """Of each node whose tensors lie in the storage of one that it reads, that one."""
    bases: Dict[fx.Node, fx.Node] = {}
    for node in nodes:
        if node.op != "call_function" or is_symbol(node):
            continue
        target = node.target
        if isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable:
            continue
        if target is operator.getitem:
            of = node.args[0]
            if isinstance(of, fx.Node) and of in bases:
                bases[node] = of
            continue
        made = {_storage(t) for t in tensors_of(node.meta.get("val"))}
        read = {_storage(t): n for n in reversed(node.all_input_nodes) for t in tensors_of(n.meta.get("val"))}
        if made and made <= set(read):
            bases[node] = next(
                n for n in node.all_input_nodes if any(_storage(t) in made for t in tensors_of(n.meta.get("val")))
            )
    return bases


def _is_collective(node: fx.Node) -> bool:
    return getattr(node.target, "namespace", "") in ("_c10d_functional", "c10d_functional", "c10d")


def _has_effect(node: fx.Node) -> bool:
    """Whether the forward does something by running it, whoever reads what it returns."""
    if node.op != "call_function" or is_symbol(node) or node.target is operator.getitem:
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    writes = node.target._schema.is_mutable
    return writes or is_random(node) or _is_collective(node) or not tensors_of(node.meta.get("val"))


def _must_keep(node: fx.Node) -> bool:
    """Whether the caller has it kept, by a policy of torch.utils.checkpoint."""
    return getattr(node.meta.get("recompute"), "name", "") == "MUST_SAVE"


def _readers_of_written(nodes: Sequence[fx.Node]) -> Set[fx.Node]:
    """What reads an input that the step writes over: a second run would read something else.

    Not batch normalisation in training: what it makes of running statistics are new ones alone, which are written once.
    """
    written: Set[int] = set()
    for node in nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            written |= {_storage(t) for n in node.all_input_nodes[:1] for t in tensors_of(n.meta.get("val"))}
    # Or written over after the forward, by what runs the graph: then the new value is among the outputs.
    described = next((node.meta.get("desc") or [] for node in nodes if node.op == "output"), [])
    after = [getattr(description, "mutated_input", None) for description in pytree.tree_leaves(described)]
    for node in nodes:
        if node.op == "placeholder" and node.meta.get("desc") is not None and node.meta["desc"] in after:
            written |= {_storage(t) for t in tensors_of(node.meta.get("val"))}
    readers: Set[fx.Node] = set()
    for node in nodes:
        name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        if node.op != "call_function" or name in _BATCH_NORM:
            continue
        if any(_storage(t) in written for n in node.all_input_nodes for t in tensors_of(n.meta.get("val"))):
            readers.add(node)
    return readers
