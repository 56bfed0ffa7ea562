"""The gauntlet's graphs, its judge, and, where highspy and ortools are installed, both models on what is small."""

import itertools
import random

import graphs
import judge
import pytest
from stowage.importing import profile_of_train_graph

# Vertices and edges of the public files of Checkmate and Moccasin, and the bytes of all their nodes together.
PUBLISHED = {
    "vgg16": (45, 87, 30949721088),
    "vgg19": (51, 99, 33621492736),
    "fcn8": (73, 149, 24428793216),
    "unet": (71, 148, 38647103616),
    "segnet": (77, 151, 38704778368),
    "mobilenet": (185, 367, 69015943168),
    "resnet50": (353, 751, 75713913856),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_train_graphs_are_those_that_were_published(name):
    graph = graphs.MADE[name]()
    assert (len(graph.nodes), len(graph.edges), sum(size for _, _, size in graph.nodes)) == PUBLISHED[name]


@pytest.mark.parametrize("name", sorted(graphs.MADE))
def test_graphs_are_profiles_and_come_back(name):
    graph = graphs.MADE[name]()
    again = graphs.of_profile(profile_of_train_graph(graph.node_link()))
    assert (again.nodes, sorted(again.edges)) == (graph.nodes, sorted(graph.edges))


@pytest.mark.parametrize("seed", range(5))
def test_layered_graphs_have_one_end_and_skips(seed):
    graph = graphs.layered(200, 0.3, seed=seed)
    read, reads = {a for a, _ in graph.edges}, {b for _, b in graph.edges}
    assert read == set(range(199)) and reads == set(range(1, 200))
    assert graph == graphs.layered(200, 0.3, seed=seed) != graphs.layered(200, 0.3, seed=seed + 1)


def answer(order, value):
    return judge.Answer("a model", "optimal", value, value, 0.0, order)


def test_the_judge_replays_an_order():
    graph = graphs.linear(3)
    profile = profile_of_train_graph(graph.node_link())
    plain = answer(list(range(7)), 7)
    assert judge.judged(profile, graph, plain, profile.store_all_peak_bytes) is None
    assert plain.judged == profile.ideal_time_ns == 7
    assert "more than the budget" in judge.judged(profile, graph, plain, profile.store_all_peak_bytes - 1)
    assert "more than it says" in judge.judged(profile, graph, answer([0, 1, 0, 2, 3, 4, 1, 5, 6], 8), 100)


def test_the_judge_leaves_out_what_nobody_reads():
    graph = graphs.linear(3)
    profile = profile_of_train_graph(graph.node_link())
    twice_unread = answer([0, 0, 1, 2, 3, 4, 1, 1, 5, 0, 6], 11)
    assert judge.judged(profile, graph, twice_unread, 100) is None
    assert twice_unread.judged == 9


def least_time(graph, budget):
    """Of all stages' sets of runs (Checkmate's class), by what is held between the stages. For a few nodes."""
    count = len(graph.nodes)
    inputs = [[a for a, b in graph.edges if b == v] for v in range(count)]
    size = [node[2] for node in graph.nodes]
    best = {frozenset(): 0}
    for stage in range(count):
        after = {}
        for held, time in best.items():
            for extra in itertools.chain.from_iterable(itertools.combinations(range(stage), k) for k in range(stage + 1)):
                runs = sorted([*extra, stage])
                here = set(runs) | held
                if set(extra) & held or any(not set(inputs[v]) <= here for v in runs):
                    continue
                taken = time + sum(graph.nodes[v][1] for v in runs)
                for kept in itertools.chain.from_iterable(itertools.combinations(sorted(here), k) for k in range(len(here) + 1)):
                    if after.get(frozenset(kept), taken + 1) <= taken:
                        continue
                    if peak(runs, held, set(kept), inputs, size) <= budget:
                        after[frozenset(kept)] = taken
        best = after
    return min(best.values(), default=None)


def peak(runs, held, kept, inputs, size):
    most, live = 0, set(held)
    for place, v in enumerate(runs):
        live.add(v)
        most = max(most, sum(size[i] for i in live))
        later = kept | {i for w in runs[place + 1 :] for i in inputs[w]}
        live = {i for i in live if i in later}
    return most


@pytest.mark.parametrize("module", ["checkmate", "moccasin"])
@pytest.mark.parametrize("seed", range(4))
def test_models_find_the_optimum_of_their_class(module, seed):
    pytest.importorskip("highspy" if module == "checkmate" else "ortools")
    solve = pytest.importorskip(module).solve
    graph = graphs.layered(7, 0.4, seed=seed)
    profile = profile_of_train_graph(graph.node_link())
    sizes = sorted({size for _, _, size in graph.nodes})
    for budget in (profile.store_all_peak_bytes, profile.store_all_peak_bytes - sizes[0], profile.store_all_peak_bytes - sizes[-1]):
        found = solve(graph, budget, 60, 1)
        assert judge.judged(profile, graph, found, budget) is None
        least = least_time(graph, budget)
        assert (found.value if found.status == "optimal" else None) == least or module == "moccasin" and least is not None
        if found.value is not None:
            assert found.value >= least
            assert profile.plan(budget).makespan_ns <= found.judged


def test_the_optimum_of_a_chain_of_unit_costs_is_known():
    pytest.importorskip("highspy")
    checkmate = pytest.importorskip("checkmate")
    graph = graphs.linear(4)
    profile = profile_of_train_graph(graph.node_link())
    least = least_time(graph, profile.store_all_peak_bytes - 1)
    assert checkmate.solve(graph, profile.store_all_peak_bytes - 1, 60, 1).value == least > 9


def test_draws_are_made_from_the_seed_alone():
    random.seed(1)
    first = graphs.layered(50, 0.3)
    random.seed(2)
    assert first == graphs.layered(50, 0.3)
