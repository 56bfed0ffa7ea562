#!/usr/bin/env python3
"""tests/bench/pair tells a slower build from one that is as fast, and from rows that differ by themselves.

    pair_test.py FOLDER      an empty one is made of it
"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

# A benchmark as Google's say what they measured; `times` are those of its runs, in turn.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
if "--benchmark_list_tests" in sys.argv:
    print("steady\\nnoisy\\n{more}")
elif "--benchmark_format=json" in sys.argv:
    row = next(a for a in sys.argv if "filter" in a).split("^")[1].rstrip("$")
    kept = pathlib.Path(__file__ + "." + row)
    run = int(kept.read_text()) if kept.exists() else 0
    kept.write_text(str(run + 1))
    times = {times}[row]
    print(json.dumps({{"benchmarks": [{{"name": row, "real_time": 1, "cpu_time": times[run % len(times)], "time_unit": "us"}}]}}))
"""


def build(folder, more, **times):
    folder.mkdir(parents=True)
    program = folder / "some_bench"
    program.write_text(PROGRAM.format(more=more, times=times))
    program.chmod(0o755)
    whole = folder / "whole"
    whole.write_text('#!/bin/sh\ntest "$1" = fails && exit 3\ntest -d "$1"\n')
    whole.chmod(0o755)
    return folder


def paired(before, after, *flags):
    page = before.parent / "page.md"
    done = subprocess.run([HERE / "pair", before, after, "--programs=some_bench", "--rounds=3", f"--page={page}", *flags], text=True, capture_output=True)
    return done.returncode, done.stdout, page.read_text() if page.exists() else done.stderr


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    # Two runs of the program before for each of the one after; the noisy row's differ by 1.5 by themselves.
    before = build(folder / "before", "gone", steady=[100, 101], noisy=[100, 150], gone=[1])
    same = build(folder / "same", "new", steady=[102], noisy=[160], new=[1])
    slower = build(folder / "slower", "gone", steady=[110], noisy=[160], gone=[1])

    code, said, page = paired(before, same)
    assert code == 0, said
    assert "| steady | 100 µs | 102 µs | 1.01 | 1.01 |  |" in page, page
    assert "| noisy | 125 µs | 160 µs | 1.28 | 1.50 |  |" in page, page
    assert "gone" not in page and "new" not in page, page

    code, said, page = paired(before, slower)
    assert code == 1 and "| steady | 100 µs | 110 µs | 1.09 | 1.01 | slower |" in page, page
    code, said, page = paired(before, slower, "--limit=1.2")
    assert code == 0, said

    # A program with arguments is a row; one that fails is none.
    code, said, page = paired(before, slower, "--programs=whole {out},whole fails")
    assert "## whole {out}" in page and "| whole {out} |" in page, page
    assert "whole fails: failed" in said and "| whole fails |" not in page, said


main()
