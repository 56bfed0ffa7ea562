"""Train graphs of others as profiles.

Checkmate (Jain et al. 2020) and Moccasin (Bartan et al. 2023) plan over one graph of a training step, forwards and backwards in
it, in which a node has a time and the bytes of its output. Their public graphs are JSON as networkx writes it (node-link data):

>>> graph = {"directed": True, "graph": {"name": "two"}, "nodes": [{"id": 0, "cost_cpu": 3, "cost_ram": 10},
...          {"id": 1, "cost_cpu": 4, "cost_ram": 20}], "links": [{"source": 0, "target": 1}]}
>>> profile_of_train_graph(graph)
<stowage.Profile 'two', compute DAG of 3>
>>> profile_of_train_graph(graph).ideal_time_ns, profile_of_train_graph(graph).store_all_peak_bytes
(7, 30)
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Hashable, List, Mapping, Sequence, Tuple, Union

from stowage.errors import InvalidArgument
from stowage.planning import Profile

_KEYS = {"time": ("cost_cpu", "duration"), "bytes": ("cost_ram", "out_cost"), "from": ("source", "0"), "to": ("target", "1")}
"""What the graphs of both call it: those of networks, and the random ones."""


def load_train_graph(path: Union[str, PathLike[str]], *, time_unit_ns: int = 1) -> Profile:
    """profile_of_train_graph of a file. Raises what reading it raises, and InvalidArgument."""
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidArgument("must be an object")
    return profile_of_train_graph(fields, time_unit_ns=time_unit_ns)


def profile_of_train_graph(graph: Mapping[str, Any], *, time_unit_ns: int = 1) -> Profile:
    """A compute DAG of node-link data: ``nodes``, with ``id`` (or ``name``), ``cost_cpu`` (``duration``) and ``cost_ram``
    (``out_cost``); ``links`` (or ``edges``), with ``source`` and ``target`` (``"0"`` and ``"1"``).

    Program order is ``graph["order"]`` where there is one, else that of the nodes. The first vertex is an input of no bytes and
    no time, which all nodes without inputs read: a source would never run again, and these may. So the node at place i (from 0)
    is number i + 2 of instructions. Nothing has to be held at the end. One unit of time is ``time_unit_ns``.

    Raises InvalidArgument, which names what is missing or wrong, and an order in which a node comes before its input.
    """
    if time_unit_ns < 1:
        raise InvalidArgument(f"time_unit_ns: {time_unit_ns} must be at least 1")
    nodes = _list(graph, "nodes")
    about = {_id(node, place): node for place, node in enumerate(nodes)}
    if len(about) != len(nodes):
        raise InvalidArgument("nodes: ids must be unique")
    places = _places(graph, list(about))
    inputs = _inputs(_list(graph, "links" if "links" in graph else "edges"), places)
    vertices: List[Dict[str, Any]] = [{"id": 0, "name": "input"}]
    for node, place in sorted(places.items(), key=lambda item: item[1]):
        fields = about[node]
        vertices.append(
            {
                "id": place + 1,
                "name": str(fields.get("name", node)),
                "program_order": place + 1,
                "inputs": [i + 1 for i in inputs.get(place, [])] or [0],
                "output_bytes": _whole(fields, "bytes", node),
                "time_ns": _whole(fields, "time", node) * time_unit_ns,
            }
        )
    name = graph.get("graph", {}).get("name", "") if isinstance(graph.get("graph", {}), Mapping) else ""
    return Profile.from_dict({"name": str(name), "dag": {"nodes": vertices}})


def _list(graph: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    values = graph.get(key)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise InvalidArgument(f"{key}: must be a list of objects")
    return values


def _id(node: Mapping[str, Any], place: int) -> Hashable:
    found = node.get("id", node.get("name"))
    if not isinstance(found, (int, str)):
        raise InvalidArgument(f"nodes[{place}]: must have an id")
    return found


def _places(graph: Mapping[str, Any], ids: Sequence[Hashable]) -> Dict[Hashable, int]:
    order = graph.get("graph", {}).get("order") or ids
    if sorted(map(str, order)) != sorted(map(str, ids)):
        raise InvalidArgument("graph.order: must have every node once")
    return {node: place for place, node in enumerate(order)}


def _inputs(links: Sequence[Mapping[str, Any]], places: Mapping[Hashable, int]) -> Dict[int, List[int]]:
    inputs: Dict[int, List[int]] = {}
    for number, link in enumerate(links):
        source, target = (_end(link, end, number, places) for end in ("from", "to"))
        if places[source] >= places[target]:
            raise InvalidArgument(f"links[{number}]: {source!r} must come before {target!r} in program order")
        into = inputs.setdefault(places[target], [])
        if places[source] not in into:
            into.append(places[source])
    return inputs


def _end(link: Mapping[str, Any], end: str, number: int, places: Mapping[Hashable, int]) -> Hashable:
    _, value = _value(link, end)
    if not isinstance(value, Hashable) or value not in places:
        raise InvalidArgument(f"links[{number}]: {_KEYS[end][0]} {value!r} must be the id of a node")
    return value


def _whole(node: Mapping[str, Any], what: str, name: Hashable) -> int:
    key, value = _value(node, what)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != int(value):
        raise InvalidArgument(f"node {name!r}: {key} {value!r} must be a whole number of at least 0")
    return int(value)


def _value(fields: Mapping[str, Any], what: str) -> Tuple[str, Any]:
    for key in _KEYS[what]:
        if key in fields:
            return key, fields[key]
    return _KEYS[what][0], None
