"""The torch-free part: profiles, plans and frontiers from Python."""

import json
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import pytest
import stowage
from profiles import STAGE, chain
from stowage import formats

DATA = pathlib.Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("file", sorted(DATA.glob("profile_*.json")) + [DATA / "chain_resnet50.json"], ids=lambda f: f.name)
def test_a_profile_goes_through_python_and_back(file):
    profile = stowage.Profile.load(file)
    again = stowage.Profile.from_json(profile.to_json())
    assert again.to_dict() == profile.to_dict()
    assert again.key() == profile.key()
    assert len(profile.key()) == 64


def test_fields_are_those_of_the_file():
    read, written = (
        json.loads((DATA / "profile_chain.json").read_text()),
        stowage.Profile.load(DATA / "profile_chain.json").to_dict(),
    )
    assert written["name"] == read["name"]
    assert written["device"]["duplex"] == "DUPLEX_FULL"
    assert written["device"]["host_memory_bytes"] == int(read["device"]["host_memory_bytes"])
    for got, expected in zip(written["chain"]["stages"], read["chain"]["stages"]):
        assert {name: type(value)(expected[name]) for name, value in got.items() if name != "saved_tensor_bytes"} == {
            name: value for name, value in got.items() if name != "saved_tensor_bytes"
        }


def test_names_may_be_in_camel_case_and_numbers_text():
    snake = chain().to_dict()
    camel = {
        "chain": {
            "inputBytes": "100",
            "stages": [
                {
                    "forwardTimeNs": "10",
                    "backwardTimeNs": 20,
                    "outputBytes": 100,
                    "outputGradientBytes": "100",
                    "savedBytes": 300,
                }
            ]
            * 8,
        }
    }
    assert stowage.Profile.from_dict(camel).to_dict() == snake


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"stages": [{"saved_byte": 3}]}, "chain.stages[0].saved_byte"),
        ({"stages": [STAGE, {"output_bytes": 3, "saved_bytes": 2}]}, "chain.stages[1].saved_bytes"),
        ({"stages": [{"output_bytes": "three"}]}, "chain.stages[0].output_bytes"),
        ({"stages": [{"output_bytes": 2**64}]}, "chain.stages[0].output_bytes"),
        ({"stages": [{"output_bytes": True}]}, "chain.stages[0].output_bytes"),
        ({"stages": [{"name": 3}]}, "chain.stages[0].name"),
        ({"stages": [3]}, "chain.stages[0]"),
        ({"stages": 3}, "chain.stages"),
        ({"stages": []}, "chain.stages"),
    ],
)
def test_a_wrong_field_is_named(fields, path):
    with pytest.raises(stowage.InvalidArgument) as raised:
        stowage.Profile.from_dict({"chain": fields})
    assert raised.value.field == path
    assert raised.value.rule
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, stowage.StowageError)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"chain": {}, "graph": {}}', "{}"])
def test_text_that_is_no_profile_is_refused(text):
    with pytest.raises(stowage.InvalidArgument):
        stowage.Profile.from_json(text)


def test_plans_keep_to_their_budget_and_more_memory_is_never_slower():
    profile = chain()
    before = None
    for share in range(100, 40, -5):
        plan = profile.plan(f"{share}%")
        assert plan.peak_bytes <= plan.budget_bytes <= profile.store_all_peak_bytes * share // 100
        assert profile.ideal_time_ns <= plan.lower_bound_ns <= plan.makespan_ns
        assert before is None or before <= plan.makespan_ns
        before = plan.makespan_ns
    assert profile.plan("100%").makespan_ns == profile.ideal_time_ns
    assert profile.lower_bound_ns(profile.budget_bytes("50%")) <= profile.plan("50%").makespan_ns


def test_below_the_least_budget_nothing_fits():
    profile = chain()
    least = profile.budget_bytes("least")
    assert profile.plan(least).peak_bytes <= least
    with pytest.raises(stowage.Infeasible) as raised:
        profile.plan(least - 1)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.least_bytes, error.budget_bytes, error.proven) == (least, least - 1, True)


def test_a_pipeline_keeps_each_device_within_its_budget():
    profile = chain()
    alone = profile.pipeline(2600, devices=1, microbatches=3)
    assert alone.makespan_ns == 3 * profile.ideal_time_ns and alone.proven_optimal
    # The first device has a second microbatch in flight, the last one not.
    plan = profile.pipeline([1500, 2600], devices=2, microbatches=4)
    assert [peak <= budget for peak, budget in zip(plan.peak_bytes, [1500, 2600])] == [True, True]
    assert plan.stages[0].first_layer == 1 and plan.stages[1].last_layer == 8
    assert plan.stages[0].last_layer + 1 == plan.stages[1].first_layer
    assert plan.lower_bound_ns <= plan.makespan_ns
    first = plan.stages[0]
    assert ("backward", 1) == first.schedule[-1][:2]
    assert all(step.op != "backward" for step in first.schedule[: first.forward_instructions - 1])
    given = profile.pipeline([1500, 2600], devices=2, microbatches=4, last_layers=[4, 8])
    assert given.makespan_ns >= plan.makespan_ns
    both = profile.pipeline(2600, devices=2, microbatches=4, chunks=2, transfer_time_ns=1)
    assert len(both.stages) == 4 and len(both.peak_bytes) == 2


def test_a_pipeline_that_does_not_fit_says_what_is_enough():
    with pytest.raises(stowage.Infeasible) as raised:
        chain().pipeline(1, devices=2, microbatches=4)
    least = raised.value.least_bytes
    assert raised.value.proven
    assert max(chain().pipeline(least, devices=2, microbatches=4).peak_bytes) == least


@pytest.mark.parametrize(
    "arguments",
    [{"devices": 0}, {"devices": 9}, {"microbatches": 0}, {"chunks": 2}, {"last_layers": [8, 8]}, {"transfer_time_ns": -1}]
    + [{"devices": 10**9}, {"budgets": [2600]}, {"budgets": [2600] * 3}, {"budgets": []}]
    + [{"budgets": budgets} for budgets in (True, 0.6, None, -1, 2**62, "60%", "least", {})]
    + [{"budgets": [2600, budget]} for budget in (True, 0.6, None, -1, 2**62, "60%")],
)
def test_what_is_no_pipeline_is_refused(arguments):
    with pytest.raises(stowage.InvalidArgument):
        chain().pipeline(**{"budgets": 2600, "devices": 2, "microbatches": 3, **arguments})


@pytest.mark.parametrize("budget", [True, 0.6, None, -1, 2**62, "sixty", "0%", "101%", "-5"])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(stowage.InvalidArgument):
        chain().plan(budget)


@pytest.mark.parametrize(
    "arguments", [{"solver": "none"}, {"threads": 0}, {"slots": -1}, {"deadline_s": 0.0}, {"deadline_s": float("nan")}]
)
def test_what_are_no_options_is_refused(arguments):
    with pytest.raises(stowage.InvalidArgument):
        chain().plan("60%", **arguments)


def test_too_large_a_table_is_refused():
    with pytest.raises(stowage.ResourceExhausted):
        stowage.Profile.load(DATA / "chain_gpt_339.json").plan("60%", solver="non_persistent", table_limit_bytes=1)


def test_a_schedule_is_what_it_says():
    plan = chain().plan("60%")
    schedule = plan.schedule()
    assert schedule[0].stage == 1 and schedule[-1] == ("backward", 1, "activation", "compute", 0)
    assert sum(i.op.startswith("forward") for i in schedule) == 9 + plan.recomputed_forwards
    again = chain().plan_of(schedule)
    assert (again.peak_bytes, again.makespan_ns, again.digest) == (plan.peak_bytes, plan.makespan_ns, plan.digest)
    assert chain().plan_of([i[:3] for i in schedule]).digest == plan.digest


@pytest.mark.parametrize(
    "schedule", [[("forward-save", 2)], [("forward", 1)], [3], [("backward",)], [("forward-save", "one")], []]
)
def test_what_is_no_schedule_is_refused(schedule):
    with pytest.raises(stowage.InvalidArgument):
        chain().plan_of(schedule)


def test_a_plan_goes_through_json():
    profile, plan = chain(), chain().plan("60%")
    again = profile.plan_from_json(plan.to_json())
    assert again.to_dict() == plan.to_dict()
    other = json.loads(plan.to_json())
    other["schedule"]["instructions"].pop()
    with pytest.raises(stowage.InvalidArgument):
        profile.plan_from_json(json.dumps(other))
    other = json.loads(plan.to_json())
    other["budget_bytes"] = plan.peak_bytes - 1
    with pytest.raises(stowage.FailedPrecondition):
        profile.plan_from_json(json.dumps(other))


def test_a_frontier_has_the_plans_of_all_budgets():
    profile = chain()
    frontier = profile.frontier()
    assert frontier.search_complete
    peaks, times = zip(*frontier.points)
    assert list(peaks) == sorted(peaks) and list(times) == sorted(times, reverse=True)
    for point in frontier.points:
        plan = frontier.plan_at(point.peak_bytes)
        assert (plan.peak_bytes, plan.makespan_ns) == point
        assert plan.makespan_ns == profile.plan(point.peak_bytes).makespan_ns
    with pytest.raises(stowage.Infeasible):
        frontier.plan_at(frontier.least_bytes - 1)


def test_graphs_are_planned_too():
    profile = stowage.Profile.load(DATA / "graph_resnet50.json")
    plan = profile.plan("70%")
    assert profile.kind == "graph" and plan.peak_bytes <= plan.budget_bytes


def test_texts_and_pages():
    plan = chain().plan("60%")
    assert "plan: found" in plan.summary()
    assert plan.explain().startswith(plan.summary()) and "peak at" in plan.explain() and "recompute" in plan.explain()
    assert "forward-no-save" in plan.schedule_text()
    page = plan.report(chain().frontier(), label="<60%>")
    assert page.lstrip().startswith("<!") and "&lt;60%&gt;" in page or "\\u003c60%" in page


def test_other_threads_run_while_one_solves():
    profile, ticks, stop = stowage.Profile.load(DATA / "graph_inception_v3.json"), [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    while not ticks:  # for ever where a solve holds them up
        profile.plan("60%")
    stop.set()
    thread.join()


def test_an_interrupt_ends_a_solve():
    program = f"""
import os, signal, threading, stowage
profile = stowage.Profile.load({str(DATA / "graph_inception_v3.json")!r})
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
done = False
signal.signal(signal.SIGINT, lambda *_: interrupted())
def interrupted():
    raise KeyboardInterrupt("heard")
try:
    threading.Timer(0.3, interrupt).start()
    while True:
        profile.frontier()
        profile.plan("55%")
except KeyboardInterrupt as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.stdout.strip() == "heard", ran.stderr


def test_errors_are_one_family():
    for name in (
        "Cancelled",
        "DeadlineExceeded",
        "ExecutionError",
        "FailedPrecondition",
        "Infeasible",
        "InternalError",
        "NotFound",
        "ResourceExhausted",
    ):
        assert issubclass(getattr(stowage, name), stowage.StowageError)
    assert "optimal_persistent" in dict(stowage.solvers())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_torch_planning_works_and_wrapping_says_what_is_missing():
    program = """
import sys
sys.modules["torch"] = None
import stowage
print(stowage.Profile.of_chain([{"output_bytes": 1, "saved_bytes": 3}]).plan("100%").peak_bytes)
try:
    stowage.wrap
except stowage.FailedPrecondition as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.stdout.splitlines() == ["3", "stowage.wrap needs PyTorch, which is not installed here"], ran.stderr


def test_without_torch_there_are_the_same_files_frontiers_and_pages(tmp_path):
    """What needs grpc is there or says that, and nothing of PyTorch."""
    program = f"""
import pathlib, sys
sys.modules["torch"] = None
import stowage
from stowage import formats, importing
folder = pathlib.Path({str(tmp_path)!r})
for name in ("profile_chain", "profile_graph"):
    profile = stowage.Profile.load({str(DATA)!r} + f"/{{name}}.json")
    (folder / name).write_text(profile.to_json())
    again, plan, frontier = stowage.Profile.load(folder / name), profile.plan("90%"), profile.frontier()
    print(again.key(), again.plan_from_json(plan.to_json()).digest, frontier.least_bytes, len(frontier.points))
    assert plan.explain().startswith(plan.summary()) and len(plan.report(frontier)) > len(plan.report()) > 0
profile = stowage.Profile.of_chain([{STAGE!r}] * 8, input_bytes=100)
print(formats.checkpointed_blocks(profile, profile.plan("60%")).value)
try:
    import stowage.rpc
    print(stowage.rpc.Server("plans:7070").address)
except stowage.FailedPrecondition as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    expected = []
    for name in ("profile_chain", "profile_graph"):
        profile = stowage.Profile.load(DATA / f"{name}.json")
        frontier = profile.frontier()
        expected.append(f"{profile.key()} {profile.plan('90%').digest} {frontier.least_bytes} {len(frontier.points)}")
    expected.append(str(formats.checkpointed_blocks(chain(), chain().plan("60%")).value))
    *got, of_rpc = ran.stdout.splitlines() or [""]
    assert got == expected, ran.stderr
    assert of_rpc == "plans:7070" or of_rpc.startswith("stowage.rpc needs the module "), of_rpc


def test_a_recompute_that_stops_early_is_cheaper():
    chain = {
        "stages": [STAGE] * 8,
        "input_bytes": 100,
        "loss": {"forward_time_ns": 1, "backward_time_ns": 1, "output_bytes": 1, "output_gradient_bytes": 1, "saved_bytes": 1},
    }
    whole = stowage.Profile.from_dict({"chain": chain})
    chain["stages"] = [dict(STAGE, recompute_saving_time_ns=6, recompute_saving_overhead_bytes=50)] * 8
    stopping = stowage.Profile.from_dict({"chain": chain})
    assert stopping.to_dict()["chain"]["stages"][0]["recompute_saving_time_ns"] == 6
    assert "recompute_saving_time_ns" not in whole.to_dict()["chain"]["stages"][0]
    assert stopping.plan("least").makespan_ns < whole.plan("least").makespan_ns
    with pytest.raises(stowage.InvalidArgument, match="recompute_saving_time_ns"):
        chain["stages"] = [dict(STAGE, recompute_saving_time_ns=11)] * 8
        stowage.Profile.from_dict({"chain": chain})
