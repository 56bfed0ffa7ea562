"""Answers of solvers, and what Stowage's evaluator says of them.

Both models count memory as the evaluator does: while a node runs, its inputs, its output and all that is held. They differ where a solution
wastes. A model may run a node whose output is held, hold a tensor longer than to its last reader, and has to run each node for the first time
at its place in the order, also where it is dropped unread and runs again later. The schedule that is judged leaves that out, so it takes no
more time and no more memory than the model says; sometimes less time than the optimum of the model's class.
"""

import dataclasses
import time


@dataclasses.dataclass
class Answer:
    solver: str
    status: str  # optimal (proven, of its class), found, nothing, infeasible (proven, of its class)
    value: int  # None: there is none
    bound: int  # of its class
    seconds: float
    order: list = None  # nodes in the order in which they run
    judged: int = None  # what its schedule takes: at most the value


def schedule(graph, order):
    """Instructions for runs in this order: node i is number i+2, an input of no bytes runs first, and a tensor is dropped after the last
    run that reads it before it is made again. Runs that nobody reads are left out, but for a node's only one."""
    inputs = [[] for _ in graph.nodes]
    for a, b in graph.edges:
        inputs[b].append(a)
    runs = list(order)
    while True:
        made, read = {}, set()  # by node: the place of its latest run; places that are read
        last = {}
        for place, node in enumerate(runs):
            for i in inputs[node]:
                read.add(made[i])
                last[made[i]] = place
            made[node] = place
        times = {node: runs.count(node) for node in set(runs)}
        waste = next((p for p in range(len(runs) - 1, -1, -1) if p not in read and times[runs[p]] > 1), None)
        if waste is None:
            break
        del runs[waste]
    drops = {}
    for place, node in enumerate(runs):
        drops.setdefault(last.get(place, place), []).append(node)
    instructions = [("forward-no-save", 1)]
    for place, node in enumerate(runs):
        instructions.append(("forward-no-save", node + 2))
        instructions += [("discard", i + 2) for i in drops.get(place, [])]
    return instructions


def judged(profile, graph, answer, budget):
    """What is wrong with an answer, or None. `profile` is the graph's."""
    if answer.order is None:
        return None
    plan = profile.plan_of(schedule(graph, answer.order))
    if plan.peak_bytes > budget:
        return f"its schedule takes {plan.peak_bytes} bytes, more than the budget"
    if plan.makespan_ns > answer.value:
        return f"its schedule takes {plan.makespan_ns}, more than it says"
    answer.judged = plan.makespan_ns
    return None


def ours(profile, budget, threads):
    cpu = time.process_time()
    plan = profile.plan(budget, threads=threads)
    status = "optimal" if plan.makespan_ns == plan.lower_bound_ns else "found"
    return Answer("stowage", status, plan.makespan_ns, plan.lower_bound_ns, time.process_time() - cpu)
