"""Trains networks of torchvision by plans with `stowage verify --script` and checks what it found: gradients and all else equal to plain
training of the network bit for bit, the measured peak the predicted one. Prints a table.

usage: torchvision_networks.py STOWAGE [--out=FILE] [--steps=N] [--repeats=N] [--budgets=LIST] [NETWORK[:BATCHxSIDE] ...]

By default all that trace_torchvision.py lists, in the sizes that it has. A FILE is a page that says where the figures are from, too.

Ends with 1 where something does not hold, with 77 where torchvision is missing.
"""
import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import trace_torchvision

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench/page"))
from machine import commit_of, describe, moment  # noqa: E402

COLUMNS = ["network", "input", "nodes", "budget", "MiB", "predicted peak MiB", "measured peak MiB", "equal", "recomputed",
           "overhead", "predicted overhead"]
EQUAL = ["loss", "gradients", "parameters", "buffers", "random_state"]


def verified(stowage, script, size, arguments):
    """What `stowage verify` prints for programs."""
    command = [stowage, "verify", f"--script={script}", f"--input={size}", "--threads=1", "--format=json", "--timeout=10m",
               f"--steps={arguments.steps}", f"--repeats={arguments.repeats}", f"--budgets={arguments.budgets}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # 3: some budget has no plan, which the report tells of.
    if done.returncode not in (0, 1, 3) or not done.stdout:
        raise RuntimeError(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def faults_of(budget):
    """What is not as it must be within one budget."""
    if budget["status"] != "found":
        return [] if budget["budget"] != "least" else [f"no plan: {budget['status']}"]
    faults = list(budget["faults"])
    faults += [f"{what} differs" for what in EQUAL if not budget["equal"][what]]
    predicted, measured = budget["predicted"]["peak_bytes"], budget["measured"]["peak_bytes"]
    if predicted != measured:
        faults.append(f"measured peak {measured}, predicted {predicted}")
    return faults


def row_of(name, size, report, budget):
    mebibytes = lambda value: f"{value / 2**20:.2f}"
    row = [name, size, str(report["nodes"]), budget["budget"], mebibytes(budget["budget_bytes"])]
    if budget["status"] != "found":
        return row + [budget["status"]] + [""] * 5
    plain = report["plain"]
    overhead = budget["measured"]["step_time_ns"] / plain["step_time_ns"] - 1
    predicted = budget["predicted"]["step_time_ns"] / plain["predicted_step_time_ns"] - 1
    return row + [mebibytes(budget["predicted"]["peak_bytes"]), mebibytes(budget["measured"]["peak_bytes"]),
                  "yes" if all(budget["equal"].values()) else "NO", str(budget["recomputed_forwards"]["executed"]),
                  f"{100 * overhead:+.0f}%", f"{100 * predicted:+.1f}%"]


def check(network, arguments, folder):
    """Rows of the table and what is wrong."""
    name, _, sizes = network.partition(":")
    batch, side = sizes.split("x") if sizes else map(str, trace_torchvision.NETWORKS[name])
    script = os.path.join(folder, f"{name}.pt")
    # In a process of its own: two copies of LibTorch in memory are one too many.
    subprocess.run([sys.executable, trace_torchvision.__file__, name, script, batch, side], check=True)
    size = f"{batch}x3x{side}x{side}"
    try:
        report = verified(arguments.stowage, script, size, arguments)
    finally:
        os.remove(script)
    rows = [row_of(name, size, report, budget) for budget in report["budgets"]]
    wrong = [f"{name} within {budget['budget']}: {fault}" for budget in report["budgets"] for fault in faults_of(budget)]
    if report["ended_by"]:
        wrong.append(f"{name}: {report['ended_by']}")
    return rows, wrong


HEAD = """# Networks of torchvision, trained by plans

`tests/soak/torchvision --out=FILE`: each network of Debian's torchvision, traced in training mode, trained {steps} steps of SGD by
`stowage verify --script` within shares of the peak that plain training has, and within the least of memory. *Equal*: loss, gradients,
parameters, buffers and random state are those of the module itself, bit for bit. *Overhead*: the median step over the median plain
step of the same run, one thread; *predicted*: the same by the profile. Networks this small have steps of milliseconds: what is below zero is what
was measured, and no gain that plans promise.

"""


def page_head(arguments):
    """What the figures are of, and from where."""
    facts = describe(pathlib.Path(arguments.stowage).resolve().parents[1]) | moment("") | {"commit": commit_of(ROOT)}
    return HEAD.format(steps=arguments.steps) + "".join(f"- {name}: {value}\n" for name, value in facts.items()) + "\n"


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("stowage")
    parser.add_argument("networks", nargs="*", default=list(trace_torchvision.NETWORKS))
    parser.add_argument("--out", default="")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budgets", default="80%,60%,40%,least")
    arguments = parser.parse_intermixed_args()
    if importlib.util.find_spec("torchvision") is None:
        print("torchvision is missing (deploy/setup --tests installs it)")
        return 77
    wrong = []
    output = open(arguments.out, "w") if arguments.out else contextlib.nullcontext(sys.stdout)
    with tempfile.TemporaryDirectory() as folder, output as out:
        if arguments.out:
            out.write(page_head(arguments))
        out.write(line(COLUMNS) + line(["---"] * len(COLUMNS)))
        for name in arguments.networks:
            try:
                rows, faults = check(name, arguments, folder)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                rows, faults = [], [f"{name}: {error}"]
            out.writelines(line(row) for row in rows)
            out.flush()
            wrong += faults
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
