"""What the rows of gpu_report (tests/bench/gpu) say: a page for people, and what is wrong with them."""
import json

CHAINS = ["resnet50", "resnet152", "densenet201", "decoder_sdpa"]
NETWORKS = CHAINS + ["nasnet"]
PYTHON = "gpt2_python"  # tests/bench/gpu/gpt2_rows.py
STEPS = ["link"] + [step for network in NETWORKS
                    for step in [network] + ([f"{network}.gain"] if network in CHAINS else []) + [f"{network}.batch"]] + [PYTHON]
BUDGETS = ["80%", "60%", "40%", "least"]
RUN = "run"  # how, and with what; "notes" are what a person has to say of it
NO_ROW = ": no row"
TESTS = {"tests": "tests/client/torch", "agent.tests": "tests/client/agent"}
COMMAND = [f"command/{network}/{verb}" for network in ("chain", "graph", "script") for verb in ("profile", "run", "verify")]
# What plans are held to on a GPU: measured over predicted. Elsewhere time is that of a device of threads, and blocks of 512 bytes
# are much of a small network's memory.
PEAK_WITHIN, STEP_WITHIN = (0.98, 1.0), (0.95, 1.05)


def expected():
    """The ids of all rows, in order."""
    ids = ["link"]
    for network in NETWORKS:
        ids += [f"{network}/{kind}/{budget}" for kind in ("recompute", "joint") for budget in BUDGETS]
        ids += [f"{network}/checkpoint_sequential"] if network in CHAINS else []
        ids += [f"{network}/selective"]
        ids += [f"{network}/gain"] if network in CHAINS else []
        ids += [f"{network}/batch/{way}" for way in ("plain", "recompute", "joint")]
    python = [f"{PYTHON}/recompute/{budget}" for budget in BUDGETS] + [f"{PYTHON}/joint/{budget}" for budget in ("60%", "least")]
    return [*TESTS, *ids, *COMMAND, *python]


def of_command(verb, said):
    """What a row keeps of the JSON of stowage profile, run or verify."""
    if verb == "profile":
        return {"device": said.get("device", {}).get("model", ""), "form": "graph" if "graph" in said else "chain"}
    budgets = []
    for one in said["budgets"]:
        found = one["measured"] is not None
        budgets.append({"budget": one["budget"], "status": one["status"], "solver": one["solver"], "faults": one["faults"], **({
            "predicted_peak_bytes": one["predicted"]["peak_bytes"], "peak_bytes": one["measured"]["peak_bytes"],
            "predicted_step_ns": one["predicted"]["step_time_ns"], "step_ns": one["measured"]["step_time_ns"],
            "recomputed": one["recomputed_forwards"]["executed"]} if found else {})})
    return {"device": said["device"], "form": said["form"], "as_plain": said["equal"], "spread": said["plain"]["spread"],
            "budgets": budgets}


def read(path):
    """The rows of a file by their ids, the last of each; a line that was cut off is none."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["row"]] = row
    return rows


def faults(rows, gpu):
    """What is missing, failed or not as promised, a text each; of a GPU more is promised."""
    found = []
    for name in expected():
        row = rows.get(name)
        if row is None and _is_skipped(name, rows):
            continue
        if row is None:
            found.append(f"{name}{NO_ROW}")
        elif "error" in row:
            found.append(f"{name}: {row['error']}")
        elif name in TESTS:
            found += [f"{name}: {program} failed" for program in row["failed"]]
        elif "budgets" in row:
            found += [f"{name}: {fault}" for fault in _faults_of_command(row, gpu)]
        elif "equal" in row:
            found += [f"{name}: {fault}" for fault in _faults_of_steps(row, gpu)]
        elif name.endswith("/least"):
            found.append(f"{name}: {row['no_plan']}")
        elif row.get("largest_batch") == 0:
            found.append(f"{name}: none fits, {row['refused_for']}")
    return found


def _is_skipped(name, rows):
    return name.startswith(f"{PYTHON}/") and PYTHON in rows


def _faults_of_steps(row, gpu):
    if row["plain_repeats"] and not row["equal"]:
        yield "loss, gradients, buffers or random state differ from plain training's"
    if not row["plain_repeats"] and row.get("from_plain", 0) > row.get("plain_spread", 0):
        yield f"gradients are {row['from_plain']:.2g} of their length from plain training's, which differ by {row['plain_spread']:.2g}"
    peak = row.get("allocated_peak_bytes", row["peak_bytes"])
    if peak > row["predicted_peak_bytes"]:
        yield f"{peak} bytes at most, {row['predicted_peak_bytes']} predicted"
    if row["waits_beyond_plain"] > 0:
        yield f"{row['waits_beyond_plain']} more waits for the device than a plain step"
    if gpu:
        yield from _outside("the peak", peak / row["predicted_peak_bytes"], (PEAK_WITHIN[0], float("inf")))
        if "step_of_prediction" in row:
            yield from _outside("the step", row["step_of_prediction"], STEP_WITHIN)


def _faults_of_command(row, gpu):
    if not row["as_plain"]:
        yield "training by plans is not plain training"
    for one in row["budgets"]:
        name = one["budget"]
        yield from (f"{name}: {fault}" for fault in one["faults"])
        if "peak_bytes" not in one:
            yield f"{name}: {one['status']}"
        elif gpu:
            share = one["peak_bytes"] / one["predicted_peak_bytes"]
            yield from (f"{name}: {fault}" for fault in _outside("the peak", share, PEAK_WITHIN))


def _outside(what, share, within):
    """Of the prediction."""
    if share < within[0]:
        yield f"{what} is {share:.3f} of the prediction, less than {within[0]:.2f}"
    if share > within[1]:
        yield f"{what} is {share:.3f} of the prediction, more than {within[1]:.2f}"


def page(rows, gpu):
    """Markdown."""
    text = ["# Training on a device, plain and by plans", ""]
    if RUN in rows:
        text += [f"`{rows[RUN]['command']}`, PyTorch {rows[RUN]['torch']}, {rows[RUN]['cores']} cores of the host.", ""]
    text += [line for note in rows.get(RUN, {}).get("notes", []) for line in (note, "")]
    peaks, steps = (f"{low:.2f} to {high:.2f}" for low, high in (PEAK_WITHIN, STEP_WITHIN))
    text += [f"On a GPU peaks are held to {peaks} of their prediction, steps to {steps}"
             + ("." if gpu else ": this was none, and nothing here was held to that."), ""]
    if "to_host_bytes_per_second" in rows.get("link", {}):
        text += [_link(rows["link"]), ""]
    for network in NETWORKS:
        text += _network(network, rows)
    text += _tests(rows) + _command(rows) + _python(rows)
    wrong = faults(rows, gpu)
    missing = [fault[:-len(NO_ROW)] for fault in wrong if fault.endswith(NO_ROW)]
    said = [f"- {fault}" for fault in wrong if not fault.endswith(NO_ROW)]
    if missing:
        said.append(f"- Not run: {', '.join(missing)}.")
    text += ["## What is missing or not as promised", ""] + (said or ["Nothing."])
    return "\n".join(text) + "\n"


def _link(link):
    speeds = [f"{link[f'{way}_bytes_per_second'] / 1e9:.1f} GB/s {words}"
              for way, words in (("to_host", "to the host"), ("to_device", "back"))]
    both = "a channel each way" if link["both_ways"] < 0.75 else "one channel for both ways"
    return f"{link['device']}, {_size(link['memory_bytes'])}; the link moves {' and '.join(speeds)}, {both}."


def _size(size):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size / 1024:.0f} KiB"


def _network(network, rows):
    mine = {name[len(network) + 1:]: row for name, row in rows.items() if name.startswith(f"{network}/")}
    steps = [(way, row) for way, row in mine.items() if "equal" in row]
    if not mine:
        return []
    text = [f"## {network}", ""]
    if steps:
        first = steps[0][1]
        repeats = "repeats bit for bit" if first["plain_repeats"] else "does not repeat bit for bit"
        mixed = ", bfloat16 by autocast" if first.get("autocast") else ""
        text += [f"Batch {first['batch']}{mixed}; plain training takes {_size(first['plain_peak_bytes'])} and "
                 f"{first['plain_step_ns'] / 1e6:.1f} ms a step, and {repeats}.", ""]
        text += ["| plan | predicted peak | allocated | of it | reserved | recomputed | copies | step, ms | of predicted | throughput of plain | equal | "
                 "more waits |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
        text += [_steps(way, row) for way, row in steps] + [""]
    text += [f"- {way}: {row['no_plan']}" for way, row in mine.items() if "no_plan" in row]
    text += [f"- {way}: {row['error']}" for way, row in mine.items() if "error" in row]
    gain = mine.get("gain", {})
    if "optimal_gain" in gain:
        text.append(f"- Over the best run of checkpoint_sequential ({gain['segments']} segments), in its memory: optimal_persistent "
                    f"{gain['optimal_gain']:+.1%} (modelled {gain['optimal_modelled']:+.1%}), the planner's choice {gain['planner_gain']:+.1%}.")
    for way in ("plain", "recompute", "joint"):
        batch = mine.get(f"batch/{way}", {})
        if "samples_per_second" in batch:
            text.append(f"- Largest batch, {way}: {batch['largest_batch']}, {batch['samples_per_second']:.1f} samples a second; "
                        f"{batch['refused_batch']} not: {batch['refused_for']}")
    return text + [""]


def _tests(rows):
    found = [(name, rows[name]) for name in TESTS if name in rows]
    if not found:
        return []
    said = [f"- `{TESTS[name]}`: {row['tests']} tests of {row['programs']} programs passed, {row['skipped']} were skipped"
            + (f"; {', '.join(row['failed'])} failed" if row["failed"] else "") + "." for name, row in found]
    return ["## Tests on the device", "", *said, ""]


def _command(rows):
    found = [(name.split("/", 1)[1], rows[name]) for name in COMMAND if name in rows]
    if not found:
        return []
    text = ["## `stowage --device`", ""]
    for name, row in found:
        if "error" in row:
            text.append(f"- {name}: {row['error']}")
        elif "budgets" not in row:
            text.append(f"- {name}: a profile of a {row['form']}, of {row['device'] or 'a device without a name'}.")
        else:
            as_plain = "as plain training" + (", within the spread of plain runs" if row["spread"] else "")
            plans = "; ".join(f"{one['budget']} ({one['solver']}) {_plan(one)}" for one in row["budgets"])
            text.append(f"- {name}: {as_plain if row['as_plain'] else 'not as plain training'}; {plans}.")
    return text + [""]


def _plan(one):
    if "peak_bytes" not in one:
        return one["status"]
    return (f"{_size(one['peak_bytes'])} of {_size(one['predicted_peak_bytes'])} predicted, {one['step_ns'] / 1e6:.1f} ms of "
            f"{one['predicted_step_ns'] / 1e6:.1f}, {one['recomputed']} forwards again")


def _python(rows):
    mine = {name.split("/", 1)[1]: row for name, row in rows.items() if name.startswith(f"{PYTHON}/")}
    if not mine and PYTHON not in rows:
        return []
    text = [f"## {PYTHON}", ""]
    if PYTHON in rows and not mine:
        return text + [f"Skipped: {rows[PYTHON]['skipped']}", ""]
    steps = [(way, row) for way, row in mine.items() if "equal" in row]
    if steps:
        text += ["GPT-2 by `stowage.wrap`; memory is that of its blocks, time that of whole steps.", "",
                 "| plan | predicted peak | measured | of it | recomputed | to the host | step, ms | throughput of plain | equal | more waits |",
                 "|---|---|---|---|---|---|---|---|---|---|"]
        text += [f"| {way} ({row['solver']}) | {_size(row['predicted_peak_bytes'])} | {_size(row['peak_bytes'])} | {row['peak_of_prediction']:.3f} | "
                 f"{row['recomputed']} | {_size(row.get('offloaded_bytes', 0))} | {row['step_ns'] / 1e6:.1f} | "
                 f"{row['throughput_of_plain']:.3f} ({row['throughput_low']:.3f} to {row['throughput_high']:.3f}) | "
                 f"{'yes' if row['equal'] else 'no'} | {row['waits_beyond_plain']} |" for way, row in steps] + [""]
    text += [f"- {way}: {row.get('no_plan', row.get('error'))}" for way, row in mine.items() if "equal" not in row]
    return text + [""]


def _steps(way, row):
    return (f"| {way} ({row['solver']}) | {_size(row['predicted_peak_bytes'])} | {_size(row['allocated_peak_bytes'])} | "
            f"{row['peak_of_prediction']:.3f} | {_size(row['reserved_peak_bytes'])} | {row['recomputed']} | {row['copies']} | "
            f"{row['step_ns'] / 1e6:.1f} | {row['step_of_prediction']:.3f} | {row['throughput_of_plain']:.3f} "
            f"({row['throughput_low']:.3f} to {row['throughput_high']:.3f}) | {_equal(row)} | {row['waits_beyond_plain']} |")


def _equal(row):
    if row["equal"] or "from_plain" not in row:
        return "yes" if row["equal"] else "no"
    return f"{row['from_plain']:.1e} of {row['plain_spread']:.1e}"
