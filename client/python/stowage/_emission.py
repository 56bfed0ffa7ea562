"""A joint graph written anew in the order of a plan, with what the plan computes again as nodes of its own."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Set, Tuple

import torch
from torch import fx

from stowage._joint import JointGraph, is_dropout, is_symbol, is_tangent, outputs_of, storage_bytes
from stowage.errors import InternalError
from stowage.planning import Plan

_AFTER = "stowage_after_forward"  # in the meta data of nodes: the plan runs it after the forward has ended


class PlannedGraph:
    """The joint graph of a plan, and what it takes.

    ``module``: the joint graph; ``saved``: what its forward leaves for its backward, ``saved_bytes`` of it,
    ``saved_symbols`` the numbers among it; ``peak_bytes``: the most that its tensors and workspaces take while it runs in
    this order; ``repeated``: how often ops run again.
    """

    def __init__(self, joint: JointGraph, plan: Plan) -> None:
        self._joint = joint
        self._graph = fx.Graph()
        self._now: Dict[fx.Node, fx.Node] = {}  # where the value of a node of the joint graph is now
        self._views: Dict[fx.Node, Tuple[fx.Node, fx.Node]] = {}  # of a view: what it was made of, and it
        self._ran: Set[fx.Node] = set()
        self._after = False
        self._returned: Dict[Any, fx.Node] = {}
        self._awaited = {
            joint.owner(value) for node in joint.nodes if self._is_last_of_forward(node) for value in node.all_input_nodes
        }
        self._owned: Dict[fx.Node, int] = {}  # bytes that come with a new node
        self._workspace: Dict[fx.Node, int] = {}
        self._lies_in: Dict[fx.Node, fx.Node] = {}  # of a new node that is no owner: where its tensors lie
        self.repeated = 0
        self._write(plan)
        self.module = fx.GraphModule(joint.module, self._graph)
        self.saved, self.saved_symbols = self._crossing()
        self.peak_bytes = self._peak()
        self.saved_bytes = sum(self._owned.get(owner, 0) for owner in {self._lies_in.get(n, n) for n in self.saved})

    def is_after(self, node: fx.Node) -> bool:
        return bool(node.meta.get(_AFTER))

    # The graph.

    def _write(self, plan: Plan) -> None:
        joint = self._joint
        for node in joint.nodes:
            if node.op == "placeholder":
                self._place(node, self._graph.node_copy(node))
        for instruction in plan.schedule():
            step = joint.steps[instruction.stage - 1]
            if step.kind == "boundary":
                self._end_forward()
            elif step.kind == "op" and step.node is not None:
                if instruction.op == "discard":
                    self._drop(step.node)
                elif not self._is_last_of_forward(step.node):
                    self._run(step.node)
        outputs = outputs_of(joint.module.graph)
        backward = [self._value(o) if isinstance(o, fx.Node) else o for o in outputs[joint.forward_count :]]
        forward = [self._returned.get(o, o) for o in outputs[: joint.forward_count]]
        self._graph.output((*forward, *backward)).meta = dict(joint.module.graph.output_node().meta)

    def _is_last_of_forward(self, node: fx.Node) -> bool:
        """What writes over an input waits for all that reads the input, wherever the plan has it."""
        return node not in self._joint.backward and self._joint.writes_into(node) is not None

    def _end_forward(self) -> None:
        for node in self._joint.nodes:
            if self._is_last_of_forward(node) or (is_symbol(node) and node not in self._joint.backward):
                self._value(node)
        self._returned = {node: self._value(node) for node in self._joint.forward_outputs}
        self._views = {}  # the backward makes views itself, of what is saved
        self._after = True

    def _drop(self, node: fx.Node) -> None:
        if node in self._joint.once:
            return
        separate = self._joint.separate_parts(node)
        for dropped in (node, *(part for part in self._joint.parts(node) if part not in separate)):
            if self._after or dropped not in self._awaited:
                self._now.pop(dropped, None)

    def _value(self, node: fx.Node) -> fx.Node:
        """The new node that has its value now; made where there is none."""
        joint = self._joint
        if node in joint.base:
            base = self._value(joint.base[node])
            made = self._views.get(node)
            if made is None or made[0] is not base:
                made = self._views[node] = (base, self._copy(node, base))
            return made[1]
        if node not in self._now:
            self._run(joint.maker(node))
        return self._now[node]

    def _run(self, node: fx.Node) -> None:
        if node in self._now and node in self._ran:
            return  # a reader came before it
        again = node in self._ran
        self._ran.add(node)
        self.repeated += again
        if again and is_dropout(node):
            self._run_dropout_again(node)
        else:
            self._place(node, self._copy(node))
        for part in self._joint.parts(node):
            if part not in self._now or not again:
                self._place(part, self._copy(part))
        for user in node.users:
            if is_symbol(user) and not again and all(n in self._now or n in self._joint.base for n in user.all_input_nodes):
                self._value(user)

    def _place(self, node: fx.Node, new: fx.Node) -> None:
        joint = self._joint
        self._now[node] = new
        self._owned[new] = joint.owned_bytes(node)
        if node.target is operator.getitem:
            self._owned[new] = storage_bytes(node.meta["val"])
        elif node.op == "call_function":
            self._workspace[new] = joint.cost(node).workspace_bytes + joint.unread_bytes(node)

    def _copy(self, node: fx.Node, base: Any = None) -> fx.Node:
        new = self._graph.node_copy(node, self._value)
        self._mark(new)
        if base is not None:
            self._lies_in[new] = self._lies_in.get(base, base)
        return new

    def _mark(self, new: fx.Node) -> None:
        new.meta = {key: value for key, value in new.meta.items() if key != "recompute"}
        new.meta[_AFTER] = self._after
        if new.meta.get("partitioner_tag") in ("is_forward", "is_backward"):
            new.meta["partitioner_tag"] = "is_backward" if self._after else "is_forward"

    def _run_dropout_again(self, node: fx.Node) -> None:
        """Of its input and its mask, as it did the first time."""
        parts = {int(p.args[1]): p for p in self._joint.parts(node)}
        rate: Any = node.args[1]
        source = self._value(node.all_input_nodes[0])
        masked = self._multiply(source, self._value(parts[1]), parts[0])
        new = self._multiply(masked, 0.0 if rate == 1.0 else 1.0 / (1.0 - rate), parts[0])
        self._place(parts[0], new)
        self._now[node] = new  # nobody reads it but by its parts

    def _multiply(self, a: fx.Node, b: Any, like: fx.Node) -> fx.Node:
        target = torch.ops.aten.mul.Tensor
        new = self._graph.call_function(target, (a, b))
        new.meta = dict(like.meta)
        self._mark(new)
        self._owned[new] = storage_bytes(like.meta["val"])
        return new

    def _crossing(self) -> Tuple[List[fx.Node], List[fx.Node]]:
        """What was made before the forward's end and is read after it."""
        saved: List[fx.Node] = []
        symbols: List[fx.Node] = []
        for node in self._graph.nodes:
            if (
                self.is_after(node)
                or is_tangent(node)
                or node.op in ("get_attr", "output")
                or not any(self.is_after(user) for user in self._readers(node))
            ):
                continue
            (symbols if is_symbol(node) else saved).append(node)
        for node in saved:
            if not isinstance(node.meta.get("val"), torch.Tensor):
                raise InternalError(f"{node.name}: a value that cannot be saved is read after the forward")
        return saved, symbols

    def _readers(self, node: fx.Node) -> List[fx.Node]:
        return [user for user in node.users if user.op != "output"]

    # What it takes.

    def beside_backward_bytes(self) -> int:
        """Held while the backward runs, whatever it reads: what the forward returned, and gradients from outside."""
        returned = {self._lies_in.get(node, node) for node in self._returned.values()}
        return sum(self._owned.get(n, 0) for n in (*returned, *(n for n in self._graph.nodes if is_tangent(n))))

    def workspaces(self) -> Dict[Any, int]:
        """The largest of each kind of op, bytes."""
        largest: Dict[Any, int] = {}
        for node, size in self._workspace.items():
            largest[node.target] = max(size, largest.get(node.target, 0))
        return largest

    def _peak(self) -> int:
        """Of the order of nodes: a tensor goes after its last use, what the forward saves or returns not before it ends."""
        order = [n for n in self._graph.nodes if n.op == "call_function"]
        place = {node: position for position, node in enumerate(order)}
        end = next((p for p, node in enumerate(order) if self.is_after(node)), len(order))
        last: Dict[fx.Node, int] = {}
        for node in self._graph.nodes:
            owner = self._lies_in.get(node, node)
            uses = [len(order) if user.op == "output" else place[user] for user in node.users]
            last[owner] = max([last.get(owner, 0), place.get(node, 0), *uses])
            if is_tangent(node):
                last[node] = len(order)
        held = most = 0
        leaving: Dict[int, int] = {}
        for node in (n for n in self._graph.nodes if is_tangent(n)):
            leaving[len(order)] = leaving.get(len(order), 0) + self._owned.get(node, 0)
        tangents = leaving.get(len(order), 0)
        for position, node in enumerate(order):
            if position == end:
                held += tangents
            owned = 0 if node in self._lies_in else self._owned.get(node, 0)
            # A tuple's tensors are there when its op ends, before any getitem.
            arriving = owned + self._parts_bytes(node)
            if node.target is not operator.getitem:
                most = max(most, held + arriving + self._workspace.get(node, 0))
            held += owned
            leaving[last[self._lies_in.get(node, node)]] = leaving.get(last[self._lies_in.get(node, node)], 0) + owned
            most = max(most, held)
            held -= leaving.pop(position, 0)
        return most

    def _parts_bytes(self, node: fx.Node) -> int:
        return sum(
            self._owned.get(user, 0) for user in node.users if user.target is operator.getitem and user not in self._lies_in
        )
