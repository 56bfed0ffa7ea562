#!/usr/bin/env python3
"""Builds and tests the torch part of the client with several LibTorchs, and writes a page of what passed, was skipped and failed.

A VERSION is debian (the system's), newest, or a number such as 2.11, of PyTorch as pip installs it. README.md beside this says more.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "bench/page"))
from machine import commit_of, describe, moment  # noqa: E402

FOLDER = ROOT / "build/versions"
PACKAGES = ROOT / "tests/client/python/packages.txt"
FRAMEWORKS = ROOT / "tests/client/python/frameworks.txt"
PAGE = ROOT / "tests/bench/measured/torch_versions.md"
DATA = PAGE.with_suffix(".json")
VERSIONS = ["debian", "2.11", "newest"]
KINDS = {"cpp": "C++", "python": "Python"}  # of tests
# What the tests of a kind are of. The package in Python is built with parts of client/torch.
SOURCES = {"cpp": ["client/torch"], "python": ["client/torch", "client/python"]}
# Of a PyTorch: its version, that of its CUDA or nothing, and where CMake finds it.
ASK = "import torch; print(torch.__version__, torch.version.cuda or '-', torch.utils.cmake_prefix_path)"


def digest_of_sources(kind):
    """Of the contents of what tests of the kind are of, Markdown aside, whether committed or not; empty outside a clone of git."""
    listed = answer("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES[kind])
    digest = hashlib.sha256()
    for name in sorted(set(listed.split("\0"))):
        file = ROOT / name
        if file.is_file() and file.suffix != ".md":
            digest.update(f"{name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12] if listed else ""


class Failure(Exception):
    """What could not be done, for the page."""


def call(log, *command, **environment):
    """Runs it; what it prints goes to the end of the log. Whether it ended well."""
    with open(log, "a") as out:
        return subprocess.run([str(word) for word in command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                              env=dict(os.environ, **environment)).returncode == 0


def make_environment(log, of, python, *options):
    """One of Python where there is none yet, by the Python `of`; `python` is its interpreter."""
    if not python.exists() and not call(log, of, "-m", "venv", *options, python.parents[1]):
        raise Failure("no environment of Python")


def install(log, python, *words):
    if not call(log, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words):
        raise Failure(f"pip does not install {' '.join(str(word) for word in words)}")


def build(log, folder, **environment):
    return call(log, "cmake", "--build", folder, "--target", "client/all", "tests/client/all", **environment)


def answer(*command):
    """What it prints; nothing where it fails or is not there."""
    try:
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class Debian:
    """The system's LibTorch, with the build of tests/run."""

    name = "debian"

    def __init__(self, log):
        self.log, self.build = log, ROOT / "build/release"

    def prepare(self):
        python = ROOT / "build/python_torch/bin/python3"
        make_environment(self.log, "/usr/bin/python3", python, "--system-site-packages")
        install(self.log, python, "-r", PACKAGES)
        if not self._configure("ON"):
            raise Failure("cannot be configured")
        library = re.search(r"^Torch_DIR:\w+=(.*)$", (self.build / "CMakeCache.txt").read_text(), re.M).group(1)
        found = re.search(r'PACKAGE_VERSION "(.*)"', pathlib.Path(library, "TorchConfigVersion.cmake").read_text())
        return {"torch": f"{found.group(1)}, Debian's", "cuda": "-"}

    def compile(self):
        return build(self.log, self.build)

    def finish(self):
        self._configure("OFF")  # tests/run takes the tree, too, and has no minutes for that

    def _configure(self, wheel):
        return call(self.log, "cmake", "--preset", "release", "-DSTOWAGE_TESTS=ON", "-DSTOWAGE_PYTHON=ON",
                    f"-DSTOWAGE_WHEEL_TEST={wheel}", "-Wno-dev", "--log-level=WARNING")


class Wheel:
    """A PyTorch of pip's, in an environment and a build of its own."""

    def __init__(self, name, log):
        self.name, self.log, self.build = name, log, FOLDER / name / "build"
        self.python = FOLDER / name / "venv/bin/python3"
        self.prefix = self.environment = None

    def prepare(self):
        make_environment(self.log, sys.executable, self.python)
        torch = ["--upgrade", "torch"] if self.name == "newest" else [f"torch=={self.name}.*"]
        install(self.log, self.python, *torch, "numpy", "-r", FRAMEWORKS)  # at once: each is of that torch
        install(self.log, self.python, "-r", PACKAGES)
        said = answer(self.python, "-W", "ignore", "-c", ASK)
        if not said:
            raise Failure("its torch cannot be imported")
        version, cuda, self.prefix = said.split(" ", 2)
        self.environment = self._toolkit(cuda) if cuda != "-" else {}
        if not call(self.log, ROOT / "tests/run_torch", "--configure", self.prefix, self.build, "-DSTOWAGE_PYTHON=ON",
                    "-DSTOWAGE_WHEEL_TEST=ON", f"-DPython_EXECUTABLE={self.python}", f"-DSTOWAGE_SERVER_BIN={ROOT / 'build/release/bin'}",
                    **self.environment):
            raise Failure("cannot be configured")
        return {"torch": version.split("+")[0], "cuda": cuda}

    def compile(self):
        return build(self.log, self.build, **self.environment)

    def finish(self):
        pass

    def _toolkit(self, cuda):
        """CUDA's compiler and headers, of PyTorch's own version; the linker's names of two libraries are not in the packages."""
        major = cuda.split(".")[0]
        install(self.log, self.python, f"cuda-toolkit[nvcc]=={cuda}.*", f"nvidia-cuda-crt=={cuda}.*", f"nvidia-nvvm=={cuda}.*")
        home = pathlib.Path(self.prefix).parents[2] / f"nvidia/cu{major}"
        for library in ("cudart", "nvrtc"):
            link = home / f"lib/lib{library}.so"
            if not link.exists():
                link.symlink_to(f"lib{library}.so.{major}")
        return {"CUDA_HOME": str(home), "CUDACXX": str(home / "bin/nvcc"), "PATH": f"{home}/bin:{os.environ['PATH']}"}


def read_gtest(lines):
    """[(how it ended, test, why it was skipped)] of what GoogleTest prints."""
    reason, tests = "", []
    for line, after in zip(lines, lines[1:] + [""]):
        if line.endswith(": Skipped"):
            reason = after.strip()
        found = re.match(r"\[ +(OK|SKIPPED|FAILED) +\] (\S+) \(\d+ ms\)$", line) or re.match(
            r"\[ +(FAILED) +\] (\S+), where .* \(\d+ ms\)$", line)
        if found:
            tests.append((found.group(1), found.group(2), reason))
    return tests


def read_pytest(lines):
    """The same of pytest, which names what did not pass and counts what did."""
    tests = []
    for line in lines:
        found = re.match(r"(SKIPPED|FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - (?:Skipped: )?(.*))?$", line)
        if found:
            tests.append(("SKIPPED" if found.group(1) == "SKIPPED" else "FAILED", found.group(2), found.group(3)))
        passed = re.match(r"(?:.*, )?(\d+) passed.* in [0-9.]+s", line)
        if passed:
            tests += [("OK", "", "")] * int(passed.group(1))
    return tests


def parts_of(text):
    """What ctest's own log has of each entry, by its name."""
    parts = re.split(r"^\d+/\d+ Test: ", text, flags=re.M)[1:]
    return {part.split("\n", 1)[0].strip(): part for part in parts}


def ended_well(part):
    return bool(re.search(r"^Test (Passed|Skipped)\.?$", part, re.M))


def joined(parts):
    """A log of these, as parts_of reads it."""
    return "".join(f"1/{len(parts)} Test: {part.rstrip()}\n" for part in parts.values())


def read_log(text):
    """What ctest's own log says of the tests in C++ and in Python, each: programs, tests passed, {reason: [test that was skipped]},
    [test or program that failed]."""
    kinds = {kind: {"programs": 0, "passed": 0, "skipped": {}, "failed": []} for kind in KINDS}
    for name, part in parts_of(text).items():
        lines = part.split("\n")
        by_pytest = " -m pytest " in f"{lines[1]} ".replace('"', "")
        counts = kinds["python" if by_pytest else "cpp"]
        tests = read_pytest(lines) if by_pytest else read_gtest(lines)
        counts["programs"] += 1
        counts["passed"] += sum(end == "OK" for end, _, _ in tests) if tests else ended_well(part)
        for _, test, why in (each for each in tests if each[0] == "SKIPPED"):
            counts["skipped"].setdefault(why, set()).add(test)
        faults = [f"{name}: {test}" for end, test, _ in tests if end == "FAILED"]
        counts["failed"] += faults if faults or ended_well(part) else [name]
    for counts in kinds.values():
        counts["skipped"] = {why: sorted(names) for why, names in counts["skipped"].items()}
    return kinds


def run(log, folder, kinds, only, kept, again):
    """What read_log says of these tests. Their log is `kept`; with `again` those of them that failed run, and the others' part is the kept one."""
    before = parts_of(kept.read_text(errors="replace")) if again and kept.exists() else {}
    of_kinds = {"python": ["-R", "^python_"], "cpp": ["-E", "^python_"]}
    chosen = ["-R", only] if only else of_kinds[kinds[0]] if len(kinds) == 1 else []
    if again:
        failed = [re.escape(name) for name, part in before.items() if not ended_well(part)]
        if not failed:
            raise Failure("no test is known to have failed")
        chosen = ["-R", f"^({'|'.join(failed)})$"]
    call(log, "ctest", "--test-dir", folder, "--output-on-failure", "--timeout", "600", "--parallel", os.cpu_count(), *chosen)
    text = joined({**before, **parts_of((folder / "Testing/Temporary/LastTest.log").read_text(errors="replace"))})
    if not only:
        kept.write_text(text)
    return read_log(text)


def measure(name, kinds, of, only, again):
    """{"torch": its version, "cuda": of its CUDA, a kind: what read_log says of it, or "failure": what could not be done},
    what is said of the machine."""
    log = FOLDER / f"{name}.log"
    log.unlink(missing_ok=True)
    version = Debian(log) if name == "debian" else Wheel(name, log)
    result, machine = {"torch": name, "cuda": ""}, {}
    begun = time.monotonic()
    try:
        result.update(version.prepare())
        machine = describe(version.build)
        if not version.compile():
            raise Failure("does not compile")
        kept = FOLDER / f"{name}.{'-'.join(kinds)}.{'-'.join(of[kind]['sources'] for kind in kinds)}.ctest"
        found = run(log, version.build / "tests/client", kinds, only, kept, again)
        result.update({kind: found[kind] for kind in kinds})
    except Failure as failure:
        result["failure"] = str(failure)
    finally:
        version.finish()
    print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return result, machine


def rows(title, entry):
    """One for each kind of tests."""
    lines = []
    for kind, called in KINDS.items():
        counts = entry.get(kind)
        if counts is None:
            continue
        cells = [title, entry["cuda"], called]
        if "failure" in counts:
            cells += [counts["failure"], "", "", ""]
        else:
            cells += [counts["programs"], counts["passed"], len(set().union(*counts["skipped"].values())), len(counts["failed"])]
        cells += [counts["commit"], counts["sources"], counts["date"]]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return lines


def by_suite(names):
    """ "Suite: Test/param, Test/param": one line for each suite, or file of pytest's."""
    suites = collections.defaultdict(list)
    for name in names:
        suite, _, test = name.partition("::" if ".py" in name else ".")
        suites[suite].append(test or "all of it")
    return [f"  - {suite}: {', '.join(tests)}" for suite, tests in sorted(suites.items())]


def faults(entry, kinds):
    """What an entry says of these kinds that has failed."""
    return [fault for kind in kinds if kind in entry
            for fault in ([entry[kind]["failure"]] if "failure" in entry[kind] else entry[kind]["failed"])]


def section(title, entry):
    lines = [f"## {title}", ""]
    for kind, called in KINDS.items():
        for why, names in sorted(entry.get(kind, {}).get("skipped", {}).items()):
            lines += [f"- {called}: {len(names)} skipped, \"{why}\":"] + by_suite(names)
    return lines + ([f"- failed: {name}" for name in faults(entry, KINDS)] or ["- none failed"]) + [""]


def page(data):
    lines = ["# PyTorch versions", "",
             "Written by `tests/run_torch --matrix`: the torch part of the client and the Python package, built and tested with each; with",
             "Debian's the rest of the client, too. What takes a GPU is skipped. *Programs*: in C++, or runs of pytest. *Sources*: a digest of",
             "client/torch, for Python of client/python, too, as they were measured.", "",
             "| LibTorch | CUDA | tests | programs | passed | skipped | failed | commit | sources | date |",
             "|---|---|---|---:|---:|---:|---:|---|---|---|"]
    titles = sorted(data["versions"], key=order)
    lines += sum((rows(title, data["versions"][title]) for title in titles), [])
    lines += ["", "| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in data["machine"].items()] + [""]
    return "\n".join(sum((section(title, data["versions"][title]) for title in titles), lines))


def order(title):
    """The system's first, then as the numbers have it."""
    return "Debian" not in title, [int(number) for number in re.findall(r"\d+", title)], title


def with_result(data, result, kinds, of, name):
    """The data with this result of the kinds, which are `of` a commit, sources and a date, each. `name`: as the version was asked for."""
    versions = {title: dict(entry) for title, entry in data["versions"].items()}
    versions.pop(name, None)  # it failed before anybody knew which one it is
    entry = {**versions.get(result["torch"], {}), "cuda": result["cuda"]}
    for kind in kinds:
        entry[kind] = {**({"failure": result["failure"]} if "failure" in result else result[kind]), **of[kind]}
    return {"machine": data["machine"], "versions": {**versions, result["torch"]: entry}}


def without_others(data, kinds, of):
    """Once these kinds are measured with all versions: what the data have of them, and is of other sources, goes."""
    versions = {}
    for title, entry in data["versions"].items():
        left = {name: value for name, value in entry.items() if name not in kinds or value["sources"] == of[name]["sources"]}
        if any(kind in left for kind in KINDS):
            versions[title] = left
    return {**data, "versions": versions}


def outdated(data):
    """Why the data are not of the sources that are here; nothing where they are, and outside a clone of git."""
    wrong = [] if len(data["versions"]) >= len(VERSIONS) else [f"{len(data['versions'])} versions are measured"]
    for title, entry in data["versions"].items():
        for kind, called in KINDS.items():
            now = digest_of_sources(kind)
            if kind not in entry:
                wrong.append(f"{title}, {called}: not measured")
            elif now and entry[kind]["sources"] != now:
                wrong.append(f"{title}, {called}: {' or '.join(SOURCES[kind])} has changed since (sources {now})")
        wrong += [f"{title}: {fault}" for fault in faults(entry, KINDS)]
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="tests/run_torch --matrix", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"default: {' '.join(VERSIONS)}")
    parser.add_argument("--python", action="store_true", help="the tests in Python alone: of a change to client/python")
    parser.add_argument("--cpp", action="store_true", help="the tests in C++ alone")
    parser.add_argument("--failed", action="store_true", help="what failed when the same sources ran, alone; with the same --python or --cpp")
    parser.add_argument("--only", default="", metavar="REGEX", help="of ctest's entries those; no page is written")
    arguments = parser.parse_args()
    chosen = arguments.versions or VERSIONS
    wrong = [name for name in chosen if name not in VERSIONS and not re.fullmatch(r"\d+(\.\d+)+", name)]
    if wrong:
        parser.error(f"no version: {', '.join(wrong)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in KINDS if getattr(arguments, kind)] or list(KINDS)
    # At the beginning: the page is written after each version, and changes the tree.
    of = {kind: {"sources": digest_of_sources(kind), "commit": commit_of(ROOT, *SOURCES[kind]), "date": moment("")["date"]} for kind in KINDS}
    failed = False
    for name in chosen:
        print(f"== {name}: build/versions/{name}.log", flush=True)
        result, machine = measure(name, kinds, of, arguments.only, arguments.failed)
        data = json.loads(DATA.read_text()) if DATA.exists() else {"machine": {}, "versions": {}}
        data = with_result(data, result, kinds, of, name)
        data["machine"] = machine or data["machine"]
        entry = data["versions"][result["torch"]]
        failed = failed or bool(faults(entry, kinds))
        print("\n".join(rows(result["torch"], entry) + section(result["torch"], entry)), flush=True)
        if arguments.only:
            continue
        if name == chosen[-1] and set(VERSIONS) <= set(chosen):
            data = without_others(data, kinds, of)
        DATA.write_text(json.dumps(data, indent=1) + "\n")
        PAGE.write_text(page(data))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
