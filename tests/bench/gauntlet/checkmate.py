"""Checkmate's MILP (Jain et al. 2020, equations 1 to 9), solved by HiGHS.

A step has a stage for each node, which ends with that node's first run. R[t,i]: node i runs in stage t; S[t,i]: it is held from stage t-1 to
stage t; FREE[t,i,k]: in stage t it is dropped when node k has run; U[t,k]: what is held while node k runs, or would. The order within a stage
is that of the graph. So: one order, and any number of runs of a node.

Where the paper sums what keeps a tensor from being dropped (7c), each reason is a row of its own here: the same whole solutions, and a
relaxation that is no weaker. Its 7b, that what may be dropped is, is not needed: dropping costs nothing.
"""

import math
import time

import highspy
import numpy

import judge


class _Rows:
    """Columns and rows, then one model of them."""

    def __init__(self):
        self.costs, self.uppers, self.whole = [], [], []
        self.lows, self.highs, self.starts, self.indices, self.values = [], [], [0], [], []

    def column(self, cost=0.0, upper=1.0, whole=True):
        self.costs.append(cost)
        self.uppers.append(upper)
        self.whole.append(whole)
        return len(self.costs) - 1

    def row(self, low, high, terms):
        self.lows.append(low)
        self.highs.append(high)
        for index, value in terms:
            self.indices.append(index)
            self.values.append(value)
        self.starts.append(len(self.indices))

    def solve(self, limit_s, threads, log):
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", log)
        solver.setOptionValue("threads", threads)
        solver.setOptionValue("time_limit", float(limit_s))
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 0.0)
        solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self.lows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = numpy.array(self.costs), numpy.zeros(lp.num_col_), numpy.array(self.uppers)
        lp.row_lower_, lp.row_upper_ = numpy.array(self.lows), numpy.array(self.highs)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = numpy.array(self.starts), numpy.array(self.indices)
        lp.a_matrix_.value_ = numpy.array(self.values)
        integer, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [integer if whole else real for whole in self.whole]
        solver.passModel(lp)
        solver.run()
        return solver


def solve(graph, budget, limit_s, threads, log=False):
    count = len(graph.nodes)
    unit = math.gcd(*(size for _, _, size in graph.nodes if size > 0))
    scale = budget // unit  # memory is counted in budgets, so that it is near 1
    size = [size // unit / scale for _, _, size in graph.nodes]
    times = [time for _, time, _ in graph.nodes]
    cost_unit = math.gcd(*times) or 1
    readers, inputs = [[] for _ in range(count)], [[] for _ in range(count)]
    for a, b in graph.edges:
        readers[a].append(b)
        inputs[b].append(a)
    rows = _Rows()
    run, held, free = {}, {}, {}
    for t in range(count):
        for i in range(t + 1):
            run[t, i] = rows.column(times[i] / cost_unit)
            if i < t:
                held[t, i] = rows.column()
        for k in range(t + 1):
            for i in inputs[k] + [k]:
                free[t, i, k] = rows.column()
    used = {(t, k): rows.column(upper=1.0, whole=False) for t in range(count) for k in range(t + 1)}
    for t in range(count):
        rows.row(1, 1, [(run[t, t], 1)])
        for k in range(t + 1):
            for i in inputs[k]:  # 1b: what a node reads runs in the stage too, or is held
                rows.row(-math.inf, 0, [(run[t, k], 1), (run[t, i], -1)] + ([(held[t, i], -1)] if i < t else []))
            if k < t:  # 1c: what is held was held before, or has run
                before = [(run[t - 1, k], -1)] + ([(held[t - 1, k], -1)] if k < t - 1 else [])
                rows.row(-math.inf, 0, [(held[t, k], 1)] + before)
            for i in inputs[k] + [k]:
                gone = free[t, i, k]
                rows.row(-math.inf, 0, [(gone, 1), (run[t, k], -1)])
                for j in readers[i]:
                    if k < j <= t:
                        rows.row(-math.inf, 1, [(gone, 1), (run[t, j], 1)])
                if t + 1 < count:
                    rows.row(-math.inf, 1, [(gone, 1), (held[t + 1, i], 1)])
            made = [(used[t, k], 1), (run[t, k], -size[k])]
            if k == 0:  # 2
                rows.row(0, 0, made + [(held[t, i], -size[i]) for i in range(t)])
            else:  # 3
                dropped = [(free[t, i, k - 1], size[i]) for i in inputs[k - 1] + [k - 1]]
                rows.row(0, 0, made + [(used[t, k - 1], -1)] + dropped)
    start = time.monotonic()
    solver = rows.solve(limit_s, threads, log)
    taken = time.monotonic() - start
    status = solver.getModelStatus()
    info = solver.getInfo()
    bound = max(sum(times), math.ceil(info.mip_dual_bound * cost_unit - 1e-6 * sum(times))) if math.isfinite(info.mip_dual_bound) else sum(times)
    if status == highspy.HighsModelStatus.kInfeasible:
        return judge.Answer("checkmate", "infeasible", None, None, taken)
    found = solver.getSolution()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return judge.Answer("checkmate", "nothing", None, bound, taken)
    values = found.col_value
    order = [i for t in range(count) for i in range(t + 1) if values[run[t, i]] > 0.5]
    value = sum(times[i] for i in order)
    optimal = status == highspy.HighsModelStatus.kOptimal
    return judge.Answer("checkmate", "optimal" if optimal else "found", value, value if optimal else bound, taken, order)
