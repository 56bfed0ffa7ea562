#!/usr/bin/env python3
"""What report.py finds wrong with rows, what it shows of them, and how a run goes on where it was cut off."""
import json
import pathlib
import subprocess
import sys
import tempfile

import report

HERE = pathlib.Path(__file__).resolve().parent
STEP = {"form": "chain", "solver": "s", "batch": 2, "budget_bytes": 9, "predicted_peak_bytes": 1024, "recomputed": 1, "copies": 0, "equal": True,
        "plain_repeats": True, "gradients": "ab", "peak_bytes": 1000, "allocated_peak_bytes": 1024, "reserved_peak_bytes": 4096, "kept_bytes": 1,
        "peak_of_prediction": 1.0, "plain_peak_bytes": 2048, "waits_beyond_plain": 0, "step_ns": 2000000, "plain_step_ns": 1000000,
        "predicted_step_ns": 2000000, "step_of_prediction": 1.0, "throughput_of_plain": 0.5, "throughput_low": 0.4, "throughput_high": 0.6}


def whole():
    rows = {}
    for name in report.expected():
        rows[name] = dict(STEP, row=name)
        if "/batch/" in name:
            rows[name] = {"row": name, "largest_batch": 8, "refused_batch": 9, "refused_for": "no memory", "samples_per_second": 1.5}
        if name.endswith("/gain"):
            rows[name] = {"row": name, "segments": 3, "optimal_gain": 0.17, "optimal_modelled": 0.2, "planner_gain": 0.18}
        if name in report.TESTS:
            rows[name] = {"row": name, "programs": 3, "tests": 12, "skipped": 2, "failed": []}
        if name in report.COMMAND:
            rows[name] = {"row": name, "device": "G", "form": "chain"}
            if not name.endswith("/profile"):
                rows[name].update(as_plain=True, spread=None, budgets=[{
                    "budget": "least", "status": "found", "solver": "s", "faults": [],
                    "predicted_peak_bytes": 1000, "peak_bytes": 990, "predicted_step_ns": 1000000, "step_ns": 3000000, "recomputed": 4}])
    rows["link"] = {"row": "link", "device": "d", "memory_bytes": 2**30, "to_host_bytes_per_second": 10**10,
                    "to_device_bytes_per_second": 10**10, "both_ways": 0.5}
    return rows


def without_python():
    rows = {name: row for name, row in whole().items() if not name.startswith(f"{report.PYTHON}/")}
    return dict(rows, **{report.PYTHON: {"row": report.PYTHON, "skipped": "no stowage"}})


def faults(rows, gpu=False):
    return report.faults(rows, gpu)


# What holds on a GPU alone.
def check_bounds():
    assert faults(whole(), gpu=True) == [], faults(whole(), gpu=True)
    for change, words in (({"step_of_prediction": 1.051}, "the step is 1.051 of the prediction, more than 1.05"),
                          ({"step_of_prediction": 0.949}, "the step is 0.949 of the prediction, less than 0.95"),
                          ({"allocated_peak_bytes": 1003}, "the peak is 0.979 of the prediction, less than 0.98")):
        rows = whole()
        rows["nasnet/recompute/80%"].update(change)
        assert faults(rows, gpu=True) == [f"nasnet/recompute/80%: {words}"], faults(rows, gpu=True)
        assert faults(rows) == []
        assert words in report.page(rows, True) and words not in report.page(rows, False)
    for change in ({"step_of_prediction": 1.05}, {"step_of_prediction": 0.95}, {"allocated_peak_bytes": 1004}):
        rows = whole()
        rows["nasnet/recompute/80%"].update(change)
        assert faults(rows, gpu=True) == []
    # Above the prediction is one fault, there and elsewhere.
    rows = whole()
    rows["nasnet/recompute/80%"]["allocated_peak_bytes"] = 1025
    assert len(faults(rows, gpu=True)) == 1
    for peak, words in ((1001, "the peak is 1.001 of the prediction, more than 1.00"), (979, "the peak is 0.979 of")):
        rows = whole()
        rows["command/graph/verify"]["budgets"][0]["peak_bytes"] = peak
        found = faults(rows, gpu=True)
        assert len(found) == 1 and f"command/graph/verify: least: {words}" in found[0], found
        assert faults(rows) == []
    assert "this was none" in report.page(whole(), False) and "this was none" not in report.page(whole(), True)


def check_faults_of_tests_and_command():
    rows = whole()
    rows["agent.tests"]["failed"] = ["agent_test"]
    rows["command/chain/run"]["as_plain"] = False
    rows["command/chain/verify"]["budgets"][0]["faults"] = ["the loss differs"]
    rows["command/graph/run"]["budgets"] = [{"budget": "60%", "status": "proven infeasible", "solver": "s", "faults": []}]
    rows["command/script/run"] = {"row": "", "error": "ended with 1"}
    assert faults(rows) == ["agent.tests: agent_test failed", "command/chain/run: training by plans is not plain training",
                            "command/chain/verify: least: the loss differs", "command/graph/run: 60%: proven infeasible",
                            "command/script/run: ended with 1"], faults(rows)
    page = report.page(rows, True)
    assert "12 tests of 3 programs passed, 2 were skipped; agent_test failed." in page, page
    assert "as plain training; least (s) 1 KiB of 1 KiB predicted, 3.0 ms of 1.0, 4 forwards again" in page, page


def check_faults():
    assert faults(whole()) == [], faults(whole())
    for change, words in (({"equal": False}, "differ"), ({"allocated_peak_bytes": 1025}, "1024 predicted"),
                          ({"waits_beyond_plain": 1}, "more waits"), ({"error": "no"}, "no")):
        rows = whole()
        rows["resnet50/joint/60%"].update(change)
        found = faults(rows)
        assert len(found) == 1 and words in found[0], found
    assert faults(without_python()) == []
    rows = whole()
    del rows["gpt2_python/recompute/least"]
    assert faults(rows) == ["gpt2_python/recompute/least: no row"]
    rows = whole()
    rows["gpt2_python/recompute/60%"] = dict(STEP, peak_bytes=1025)
    del rows["gpt2_python/recompute/60%"]["allocated_peak_bytes"]
    assert faults(rows) == ["gpt2_python/recompute/60%: 1025 bytes at most, 1024 predicted"]
    # Where plain training does not repeat, plans are held to how far its runs are apart.
    rows = whole()
    rows["resnet50/joint/60%"].update(equal=False, plain_repeats=False, plain_spread=2e-4, from_plain=1e-4)
    assert faults(rows) == []
    assert "| 1.0e-04 of 2.0e-04 |" in report.page(rows, False)
    rows["resnet50/joint/60%"].update(from_plain=3e-4)
    assert faults(rows) == ["resnet50/joint/60%: gradients are 0.0003 of their length from plain training's, which differ by 0.0002"], faults(rows)
    rows["resnet50/joint/60%"].update(from_plain=1e-4)
    rows["nasnet/batch/joint"]["largest_batch"] = 0
    del rows["link"]
    rows["resnet152/recompute/40%"] = {"row": "", "no_plan": "least is 3"}
    rows["resnet152/joint/least"] = {"row": "", "no_plan": "least is 3"}
    assert [fault.split(":")[0] for fault in faults(rows)] == ["link", "resnet152/joint/least", "nasnet/batch/joint"], faults(rows)


# The page that is kept is what its rows say.
def check_kept():
    kept = HERE.parent / "bench/measured/gpu"
    assert (kept / "page.md").read_text() == report.page(report.read(kept / "rows.jsonl"), True)


def check_page(out):
    page = report.page(whole(), False)
    assert "10.0 GB/s to the host" in page and "| joint/60% (s) |" in page and "+17.0%" in page and "Nothing." in page and "joint: 8, 1.5 samples a second; 9 not: no memory" in page, page
    noted = dict(whole(), run={"row": "run", "command": "tests/gpu/run", "torch": "2", "cores": 4, "notes": ["One.", "Two."]})
    assert "4 cores of the host.\n\nOne.\n\nTwo.\n\nOn a GPU" in report.page(noted, False), report.page(noted, False)
    assert "## gpt2_python" in page and "| recompute/60% (s) | 1 KiB | 1 KiB | 1.000 |" in page, page
    assert "Skipped: no stowage" in report.page(without_python(), False)
    file = out / "rows.jsonl"
    file.write_text(json.dumps(whole()["link"]) + '\n{"row": "resnet50/gain", "seg')
    assert set(report.read(file)) == {"link"}
    page = report.page(report.read(file), False)
    assert page.count("resnet50/gain") == 1 and "- Not run: tests, agent.tests, resnet50/recompute/80%, " in page, page


def run(out, *arguments):
    return subprocess.run([sys.executable, HERE / "run", f"--out={out}", f"--built={out / 'built'}", "--device=cuda:3", *arguments],
                          capture_output=True, text=True)


def check_run(out):
    assert run(out, "--only=report.nothing").returncode == 2
    program = out / "built/bin/gpu_report"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >> ' + f"{out}/calls\n" + 'case "$1" in *resnet152) exit 1 ;; *nasnet) sleep 60 ;; esac\n')
    program.chmod(0o755)
    names = run(out, "--list").stdout.split()
    reports = [f"report.{step}" for step in report.STEPS if step != report.PYTHON]
    command = [f"command.{network}" for network in ("chain", "graph", "script")]
    assert names == ["tests", *reports, "agent.tests", *command, f"report.{report.PYTHON}", "check"], names
    only = [f"--only=report.{step}" for step in ("link", "resnet152", "nasnet")]
    done = run(out, "--limit=2", *only)
    assert done.returncode == 1, done
    assert "report.link: ok" in done.stdout and "report.resnet152: ended with 1" in done.stdout, done
    assert "report.nasnet: was cut off by its limit" in done.stdout, done
    assert "--device=cuda:3" in (out / "calls").read_text()
    program.write_text(f"#!/bin/sh\necho again $1 >> {out}/calls\n")
    done = run(out, "--resume", *only)
    assert done.returncode == 0 and "link" not in done.stdout, done
    assert "again --step=nasnet" in (out / "calls").read_text()
    assert run(out, "--total=-1", *only).stdout.count("left to --resume") == 3


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_faults()
        check_bounds()
        check_faults_of_tests_and_command()
        check_page(pathlib.Path(folder))
        check_kept()
        check_run(pathlib.Path(folder))
