#!/usr/bin/env python3
"""deploy/build_progress counts steps, estimates what is left from what steps took, and passes on what is no step.

    build_progress_test.py DEPLOY_DIRECTORY
"""
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(sys.argv[1]) / "build_progress"


def shown(steps, lines):
    with tempfile.NamedTemporaryFile("w", suffix="_steps") as file:
        file.write("# Seconds and output.\n" + "".join(f"{seconds} {output}\n" for output, seconds in steps.items()))
        file.flush()
        return subprocess.run([PROGRAM, file.name], input="".join(line + "\n" for line in lines), text=True, capture_output=True,
                              check=True).stdout.split("\n")[:-1]


def build(steps, total, speed=1.0):
    """The lines of a build of these steps, one after the other."""
    elapsed, lines = 0.0, []
    for number, (output, seconds) in enumerate(steps.items(), 1):
        elapsed += seconds * speed
        lines.append(f"{number} {total} {elapsed:.3f} Building CXX object {output}")
    return lines


# Ten steps of a minute, five of which are the last: half the steps are not half the time.
slow_end = {**{f"solvers/schedule/{i}.o": 6 for i in range(5)}, **{f"client/torch/{i}.o": 60 for i in range(5)}}
lines = shown(slow_end, build(slow_end, 10))
assert lines[4] == "built 5 of 10, 5 min left: the planning library", lines
assert lines[5] == "built 6 of 10, 4 min left: training by plans in LibTorch", lines
assert lines[-1].startswith("built 10 of 10, under a minute left"), lines
# A machine of a third of the speed.
assert shown(slow_end, build(slow_end, 10, speed=3))[4].startswith("built 5 of 10, 15 min left"), "slower"
# Where half of it was built before: by the mean of all steps.
assert shown(slow_end, build(dict(list(slow_end.items())[:1]), 5))[0].startswith("built 1 of 5, 2 min left"), "a part"
# A line for every tenth of many steps, and all of an error.
many = {f"server/{i}.o": 1 for i in range(200)}
lines = build(many, 200)
lines[100:100] = ["FAILED: server/100.o", "server/100.cc:1:1: error: no"]
lines = shown(many, lines)
assert len(lines) == 12 and lines[5:7] == ["FAILED: server/100.o", "server/100.cc:1:1: error: no"], lines
# Steps that nobody has measured.
assert shown({}, ["1 2 1.0 Linking CXX executable bin/stowaged"]) == ["built 1 of 2: stowaged, the service"], "no steps"
print("counted")
