"""Train graphs of Checkmate and Moccasin as compute DAGs."""

import copy
import json

import pytest
import stowage
from stowage.importing import load_train_graph, profile_of_train_graph

# Two forwards, the loss, two backwards; every backward reads its forward's output, the first one's input's reader, too.
TRAIN = {
    "directed": True,
    "multigraph": False,
    "graph": {"name": "small_train"},
    "nodes": [
        {"name": "a", "backward": False, "cost_cpu": 5, "cost_ram": 100, "id": 0},
        {"name": "b", "backward": False, "cost_cpu": 7, "cost_ram": 40, "id": 1},
        {"name": "Loss", "backward": True, "cost_cpu": 1, "cost_ram": 4, "id": 2},
        {"name": "b_backward", "backward": True, "cost_cpu": 14, "cost_ram": 40, "id": 3},
        {"name": "a_backward", "backward": True, "cost_cpu": 10, "cost_ram": 100, "id": 4},
    ],
    "links": [{"source": s, "target": t} for s, t in [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4), (0, 4), (1, 4)]],
}


def test_a_train_graph_is_a_dag_whose_first_node_may_run_again():
    profile = profile_of_train_graph(TRAIN, time_unit_ns=1000)
    assert (profile.name, profile.kind) == ("small_train", "compute DAG")
    assert profile.labels[1:] == ["input", "a", "b", "Loss", "b_backward", "a_backward"]
    assert profile.ideal_time_ns == 37_000
    assert profile.store_all_peak_bytes == 100 + 40 + 40 + 100  # a_backward, and what it reads
    nodes = profile.to_dict()["dag"]["nodes"]
    assert [node["inputs"] for node in nodes] == [[], [0], [1], [2], [3, 2], [4, 1, 2]]
    with_a_twice = [("forward-no-save", v) for v in (1, 2, 3)]
    with_a_twice += [("discard", 2), ("forward-no-save", 4), ("forward-no-save", 5), ("discard", 4)]
    with_a_twice += [("forward-no-save", 2), ("forward-no-save", 6)]
    assert profile.plan_of(with_a_twice).makespan_ns == 42_000


def test_the_random_graphs_have_other_words_and_an_order():
    random = {
        "graph": {"name": "random", "order": [0, 2, 1]},
        "nodes": [{"name": i, "duration": i, "out_cost": 10 * i} for i in range(3)],
        "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}],
    }
    nodes = profile_of_train_graph(random).to_dict()["dag"]["nodes"]
    assert [(n["name"], n["time_ns"], n["output_bytes"], n["inputs"]) for n in nodes[1:]] == [
        ("0", 0, 0, [0]),
        ("2", 2, 20, [1]),
        ("1", 1, 10, [2]),
    ]


def changed(change):
    graph = copy.deepcopy(TRAIN)
    change(graph)
    return graph


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: g.pop("nodes"), "nodes: must be a list"),
        (lambda g: g["nodes"][1].update(id=0), "ids must be unique"),
        (lambda g: [g["nodes"][1].pop(key) for key in ("id", "name")], r"nodes\[1\]: must have an id"),
        (lambda g: g["nodes"][2].pop("cost_cpu"), "node 2: cost_cpu None must be a whole number"),
        (lambda g: g["nodes"][2].update(cost_ram=-1), "node 2: cost_ram -1 must be"),
        (lambda g: g["nodes"][2].update(cost_ram=0.5), "node 2: cost_ram 0.5 must be"),
        (lambda g: g["links"].append({"source": 0, "target": 9}), r"links\[7\]: target 9 must be the id of a node"),
        (lambda g: g["links"].append({"source": 3, "target": 1}), r"links\[7\]: 3 must come before 1"),
        (lambda g: g["graph"].update(order=[0, 1, 2, 3, 3]), "graph.order: must have every node once"),
    ],
)
def test_what_is_wrong_is_named(change, says):
    with pytest.raises(stowage.InvalidArgument, match=says):
        profile_of_train_graph(changed(change))


def test_files_are_read(tmp_path):
    (tmp_path / "g.json").write_text(json.dumps(TRAIN))
    assert load_train_graph(tmp_path / "g.json").to_dict() == profile_of_train_graph(TRAIN).to_dict()
    for text, says in [("{", "not JSON"), ("[]", "must be an object")]:
        (tmp_path / "g.json").write_text(text)
        with pytest.raises(stowage.InvalidArgument, match=says):
            load_train_graph(tmp_path / "g.json")
    with pytest.raises(stowage.InvalidArgument, match="time_unit_ns"):
        profile_of_train_graph(TRAIN, time_unit_ns=0)
