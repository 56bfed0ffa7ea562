#!/usr/bin/env python3
"""tests/bench/all --quick: each section is on the page with figures, each program of tests/bench has a section, and what has been measured is not
measured again.

    page_test.py BUILD_DIRECTORY OUT
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from measure import Measured  # noqa: E402
from publish import publish  # noqa: E402
from sections import Section, sections  # noqa: E402
from tables import joined, merged, of_benchmarks  # noqa: E402


def check_tables():
    assert merged(["a 1.5 ms, b2 3", "a 1.7 ms, b2 3", "a 1.6 ms, b2 3"]) == "```text\na 1.6 (1.5 to 1.7) ms, b2 3\n```"
    assert "differ" in merged(["| a |\n| 1 |", "| a |"])
    runs = [{"run_name": "x/1", "run_type": "iteration", "cpu_time": time, "time_unit": "ms", "worst": 2} for time in (3, 1, 2)]
    assert of_benchmarks({"benchmarks": runs}).split("\n")[2] == "| `x/1` | ms | 1 | 2 | 3 | 3 | 2 |"
    assert of_benchmarks({"benchmarks": []}) == ""
    parts = [f"| name | gain | of |\n|---|---|---:|\n| {name} | {gain}% (+1.0 to +9.0) | 7 |\n\nmean of 1" for name, gain in (("a", "+2.0"), ("b", "-1.0"))]
    assert joined(parts, ()).split("\n") == parts[0].split("\n")[:3] + parts[1].split("\n")[2:3]
    assert joined(parts, ("gain",)).split("\n")[4:] == ["| mean of 2 | +0.5% |  |"]


def check_states(out):
    """What becomes of programs that do not do well, and that a measured one is not measured again."""
    programs = out / "programs"
    programs.mkdir(parents=True)
    scripts = {"good": "echo 1.5 ms", "slow": "sleep 60 & echo 1; wait", "bad": "echo why >&2; exit 3", "silent": "true", "unable": "exit 77",
               "parts": "if [ $1 = --list ]; then echo x; echo y; exit; fi; echo run >> count; [ $1 = --name=x -o -e mended ] || exit 1\n"
                        "printf '| n |\\n|---|\\n| %s %s |\\nalone\\n' $1 $(($(wc -l < count) - ($(wc -l < count) > 1)))"}
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    def measured(name, commit="a", **more):
        section = Section(name, name, [name], "", runs=2, limit_s=1 if name == "slow" else 60, folder=out / name, **more)
        result = Measured(section, {}, commit, out)
        kept = result.done
        if not kept:
            result.measure(programs, "")
        return result.state, kept, result.markdown

    assert measured("good") == ("done", False, "```text\n1.5 ms\n```") and measured("good")[1]
    assert not measured("good", commit="b")[1], "of another commit"
    assert measured("slow")[0] == "cut off" and not measured("slow")[1]
    state, _, said = measured("bad")
    assert state == "failed" and "exit code 3" in said and "why" in said, said
    assert measured("silent")[0] == "empty" and measured("nobody")[0] == "missing"
    assert measured("unable")[0] == "skipped" and measured("unable")[1]
    # Of parts the ones that failed run again; it was begun with the first.
    assert measured("parts", part_flag="--name=")[0] == "failed"
    kept = out / "sections" / "parts.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "moment": {"date": "then"}}))
    (out / "parts" / "mended").touch()
    assert measured("parts", part_flag="--name=") == ("done", False, "| n |\n|---|\n| --name=x 1 |\n| --name=y 2 |")
    assert measured("parts", part_flag="--name=")[1]
    assert json.loads(kept.read_text())["moment"]["date"] == "then"


def check_published(out, page):
    folder = out / "published"
    publish(out, folder)
    copied = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert copied == {"figures.md", *re.findall(r"!\[.*\]\((.*)\)", page)}, copied
    assert all((folder / name).read_bytes() == (out / name).read_bytes() for name in copied)


def check_programs(out):
    """Programs of CMakeLists.txt, but for those that others start; gpu_report is for a machine with a GPU (tests/gpu/run), redis_client_times for
    one with the sources of other libraries (tests/bench/redis_libraries/run)."""
    programs = set()
    for listing in HERE.parent.rglob("CMakeLists.txt"):
        text = listing.read_text()
        for loop in re.findall(r"foreach\(program ([^)]*)\)", text):
            programs |= set(loop.split())
        programs |= set(re.findall(r"stowage_binary\((\w+)", text))
    assert len(programs) > 15, programs
    without = programs - {"gpu_report", "redis_client_times"} - {section.command[0] for section in sections(True, out)}
    assert not without, f"no section in sections.py: {without}"


def run(build, out):
    done = subprocess.run([HERE.parent / "all", "--quick", "--build", build, out], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr + (out / "figures.md").read_text()[:3000]
    return done.stdout


def main():
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    check_tables()
    check_programs(out)
    shutil.rmtree(out, ignore_errors=True)
    check_states(out)
    shutil.rmtree(out, ignore_errors=True)
    run(build, out)
    page = (out / "figures.md").read_text()
    parts = dict(zip(re.findall(r"^## (.*)$", page, re.M), re.split(r"^## .*$", page, flags=re.M)[1:]))
    for section in sections(True, out):
        part = parts.get(section.title, "")
        if json.loads((out / "sections" / f"{section.name}.json").read_text())["state"] == "skipped":
            continue
        figures = [line for line in part.split("\n")[3:] if re.search(r"\d", line)]
        assert figures, f"{section.title} has no figures:\n{part}"
    lines = page.split("\n")
    for number, line in enumerate(lines[:-1]):
        if re.match(r"\| ?:?---", line):
            assert lines[number + 1].startswith("|"), f"an empty table: {lines[number - 1]}"
    for picture in re.findall(r"!\[.*\]\((.*)\)", page):
        assert (out / picture).read_text().lstrip().startswith("<"), picture
    assert len(re.findall(r"!\[", page)) >= 3, "pictures are missing"
    check_published(out, page)
    for field in ("processor", "compiler"):
        assert re.search(rf"^\| {field} \| (?!unknown)\S", page, re.M), field
    begun = re.findall(r"^\| \[.*\| \d+ s \| \S[^|]* \| \d{4}-\d\d-\d\d \d\d:\d\d UTC \| all \| [\d. ]+ \|$", page, re.M)
    assert len(begun) == len(parts), begun
    (out / "sections" / "cluster.json").unlink()
    assert re.findall(r"^== (\w+)", run(build, out), re.M) == ["cluster"], "measured again"
    print(len(parts), "sections")


main()
