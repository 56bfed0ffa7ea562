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
    rows["link"] = {"row": "link", "device": "d", "memory_bytes": 2**30, "to_host_bytes_per_second": 10**10,
                    "to_device_bytes_per_second": 10**10, "both_ways": 0.5}
    return rows


def without_python():
    rows = {name: row for name, row in whole().items() if not name.startswith(f"{report.PYTHON}/")}
    return dict(rows, **{report.PYTHON: {"row": report.PYTHON, "skipped": "no stowage"}})


def check_faults():
    assert report.faults(whole()) == [], report.faults(whole())
    for change, words in (({"equal": False}, "differ"), ({"allocated_peak_bytes": 1025}, "1024 predicted"),
                          ({"waits_beyond_plain": 1}, "more waits"), ({"error": "no"}, "no")):
        rows = whole()
        rows["resnet50/joint/60%"].update(change)
        found = report.faults(rows)
        assert len(found) == 1 and words in found[0], found
    assert report.faults(without_python()) == []
    rows = whole()
    del rows["gpt2_python/recompute/least"]
    assert report.faults(rows) == ["gpt2_python/recompute/least: no row"]
    rows = whole()
    rows["gpt2_python/recompute/60%"] = dict(STEP, peak_bytes=1025)
    del rows["gpt2_python/recompute/60%"]["allocated_peak_bytes"]
    assert report.faults(rows) == ["gpt2_python/recompute/60%: 1025 bytes at most, 1024 predicted"]
    rows = whole()
    rows["resnet50/joint/60%"].update(equal=False, plain_repeats=False)
    assert report.faults(rows) == []
    rows["nasnet/batch/joint"]["largest_batch"] = 0
    del rows["link"]
    rows["resnet152/recompute/40%"] = {"row": "", "no_plan": "least is 3"}
    rows["resnet152/joint/least"] = {"row": "", "no_plan": "least is 3"}
    assert [fault.split(":")[0] for fault in report.faults(rows)] == ["link", "resnet152/joint/least", "nasnet/batch/joint"], report.faults(rows)


def check_page(out):
    page = report.page(whole())
    assert "10.0 GB/s to the host" in page and "| joint/60% (s) |" in page and "+17.0%" in page and "Nothing." in page and "joint: 8, 1.5 samples a second; 9 not: no memory" in page, page
    assert "## gpt2_python" in page and "| recompute/60% (s) | 1 KiB | 1 KiB | 1.000 |" in page, page
    assert "Skipped: no stowage" in report.page(without_python())
    file = out / "rows.jsonl"
    file.write_text(json.dumps(whole()["link"]) + '\n{"row": "resnet50/gain", "seg')
    assert set(report.read(file)) == {"link"}
    assert "no row" in report.page(report.read(file))


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
    assert names == ["tests"] + [f"report.{step}" for step in report.STEPS] + ["check"], names
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
        check_page(pathlib.Path(folder))
        check_run(pathlib.Path(folder))
