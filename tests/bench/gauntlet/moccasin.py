"""Moccasin's retention intervals (Bartan et al. 2023), solved by CP-SAT of OR-tools.

A run of a node and the time for which its output is held is an interval. Node v has `runs` of them: the first one always, the others
optional. Events are staged: stage j has an event for each node of the order up to j, and event v of stage v is v's first run; its further
runs are at its event of a later stage. A run needs, for each of its inputs, an interval that began before and has not ended. Intervals with
the bytes of their nodes are within the budget at all times (cumulative). Hence: one order, and at most `runs` runs of a node.
"""

import math
import time

from ortools.sat.python import cp_model

import judge


def solve(graph, budget, limit_s, threads, runs=2, log=False):
    count = len(graph.nodes)
    unit = math.gcd(*(size for _, _, size in graph.nodes if size > 0))
    event = lambda stage, node: stage * (stage + 1) // 2 + node
    horizon = event(count, 0)
    model = cp_model.CpModel()
    starts, ends, present, intervals, demands, terms = [], [], [], [], [], []
    for v, (_, taken, size) in enumerate(graph.nodes):
        starts.append([])
        ends.append([])
        present.append([])
        for run in range(runs if v + 1 < count else 1):
            if run == 0:
                start, here = model.new_constant(event(v, v)), model.new_constant(1)
            else:
                domain = cp_model.Domain.from_values([event(j, v) for j in range(v + run, count)])
                start, here = model.new_int_var_from_domain(domain, f"start_{v}_{run}"), model.new_bool_var(f"run_{v}_{run}")
                model.add(ends[v][-1] <= start).only_enforce_if(here)
                if run > 1:
                    model.add_implication(here, present[v][-1])
                terms.append(taken * here)
            end = model.new_int_var(event(v, v) + 1, horizon, f"end_{v}_{run}")
            length = model.new_int_var(1, horizon, f"length_{v}_{run}")
            intervals.append(model.new_optional_interval_var(start, length, end, here, f"interval_{v}_{run}"))
            demands.append(size // unit)
            starts[v].append(start)
            ends[v].append(end)
            present[v].append(here)
            if v + run >= count:
                model.add(here == 0)
    for a, b in graph.edges:
        for start, here in zip(starts[b], present[b]):
            choices = []
            for run in range(len(starts[a])):
                chosen = model.new_bool_var("")
                model.add_implication(chosen, present[a][run])
                model.add(starts[a][run] < start).only_enforce_if(chosen)
                model.add(ends[a][run] > start).only_enforce_if(chosen)
                choices.append(chosen)
            model.add_bool_or(choices).only_enforce_if(here)
    model.add_cumulative(intervals, demands, budget // unit)
    ideal = sum(taken for _, taken, _ in graph.nodes)
    model.minimize(ideal + sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.num_workers = threads
    solver.parameters.log_search_progress = log
    begin = time.monotonic()
    status = solver.solve(model)
    wall = time.monotonic() - begin
    if status == cp_model.INFEASIBLE:
        return judge.Answer("moccasin", "infeasible", None, None, wall)
    bound = max(ideal, math.ceil(solver.best_objective_bound - 1e-6))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return judge.Answer("moccasin", "nothing", None, bound, wall)
    at = [(solver.value(s), v) for v in range(count) for s, here in zip(starts[v], present[v]) if solver.value(here)]
    value = round(solver.objective_value)
    optimal = status == cp_model.OPTIMAL
    return judge.Answer("moccasin", "optimal" if optimal else "found", value, value if optimal else bound, wall, [v for _, v in sorted(at)])
