#!/usr/bin/env python3
"""Builds and tests the torch part of the client with several LibTorchs, and writes a page of what passed, was skipped and failed.

A VERSION is debian (the system's), newest, or a number such as 2.11, of PyTorch as pip installs it. README.md beside this says more.
"""
import argparse
import collections
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
PAGE = ROOT / "tests/bench/measured/torch_versions.md"
VERSIONS = ["debian", "2.11", "newest"]
# Of a PyTorch: its version, that of its CUDA or nothing, and where CMake finds it.
ASK = "import torch; print(torch.__version__, torch.version.cuda or '-', torch.utils.cmake_prefix_path)"


class Failure(Exception):
    """What could not be done, for the page."""


def call(log, *command, **environment):
    """Runs it; what it prints goes to the end of the log. Whether it ended well."""
    with open(log, "a") as out:
        return subprocess.run([str(word) for word in command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                              env=dict(os.environ, **environment)).returncode == 0


def answer(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else ""


class Debian:
    """The system's LibTorch, with the build of tests/run."""

    name = "debian"

    def __init__(self, log):
        self.log, self.build = log, ROOT / "build/release"

    def prepare(self):
        if not call(self.log, "cmake", "--preset", "release", "-DSTOWAGE_TESTS=ON", "-Wno-dev", "--log-level=WARNING"):
            raise Failure("cannot be configured")
        library = re.search(r"^Torch_DIR:\w+=(.*)$", (self.build / "CMakeCache.txt").read_text(), re.M).group(1)
        found = re.search(r'PACKAGE_VERSION "(.*)"', pathlib.Path(library, "TorchConfigVersion.cmake").read_text())
        return {"torch": f"{found.group(1)}, Debian's", "cuda": "-"}

    def compile(self):
        return call(self.log, "cmake", "--build", self.build, "--target", "client/all", "tests/client/all")


class Wheel:
    """A PyTorch of pip's, in an environment and a build of its own."""

    def __init__(self, name, log):
        self.name, self.log, self.build = name, log, FOLDER / name / "build"
        self.python = FOLDER / name / "venv/bin/python3"
        self.prefix = self.environment = None

    def prepare(self):
        if not self.python.exists() and not call(self.log, sys.executable, "-m", "venv", FOLDER / self.name / "venv"):
            raise Failure("no environment of Python")
        torch = "torch" if self.name == "newest" else f"torch=={self.name}.*"
        self._install("--upgrade" if self.name == "newest" else "--quiet", torch, "numpy")
        said = answer(self.python, "-W", "ignore", "-c", ASK)
        if not said:
            raise Failure("its torch cannot be imported")
        version, cuda, self.prefix = said.split(" ", 2)
        self.environment = self._toolkit(cuda) if cuda != "-" else {}
        if not call(self.log, ROOT / "tests/run_torch", "--configure", self.prefix, self.build, **self.environment):
            raise Failure("cannot be configured")
        return {"torch": version.split("+")[0], "cuda": cuda}

    def compile(self):
        return call(self.log, "cmake", "--build", self.build, "--target", "client/all", "tests/client/all", **self.environment)

    def _install(self, *words):
        if not call(self.log, self.python, "-m", "pip", "install", "--disable-pip-version-check", *words):
            raise Failure(f"pip does not install {' '.join(words)}")

    def _toolkit(self, cuda):
        """CUDA's compiler and headers, of PyTorch's own version; the linker's names of two libraries are not in the packages."""
        major = cuda.split(".")[0]
        self._install("--quiet", f"cuda-toolkit[nvcc]=={cuda}.*", f"nvidia-cuda-crt=={cuda}.*", f"nvidia-nvvm=={cuda}.*")
        home = pathlib.Path(self.prefix).parents[2] / f"nvidia/cu{major}"
        for library in ("cudart", "nvrtc"):
            link = home / f"lib/lib{library}.so"
            if not link.exists():
                link.symlink_to(f"lib{library}.so.{major}")
        return {"CUDA_HOME": str(home), "CUDACXX": str(home / "bin/nvcc"), "PATH": f"{home}/bin:{os.environ['PATH']}"}


def read_log(text):
    """What ctest's own log says: programs, tests passed, {reason: [test that was skipped]}, [test or program that failed]."""
    programs, passed, skipped, failed = 0, 0, collections.defaultdict(set), []
    for part in re.split(r"^\d+/\d+ Test: ", text, flags=re.M)[1:]:
        name = part.split("\n", 1)[0].strip()
        programs += 1
        reason, tests = "", []
        lines = part.split("\n")
        for line, after in zip(lines, lines[1:] + [""]):
            found = re.match(r"\[ +(OK|SKIPPED|FAILED) +\] (\S+) \(\d+ ms\)$", line) or re.match(
                r"\[ +(FAILED) +\] (\S+), where .* \(\d+ ms\)$", line)
            if line.endswith(": Skipped"):
                reason = after.strip()
            if found:
                tests.append((found.group(1), found.group(2), reason))
        ended_well = re.search(r"^Test (Passed|Skipped)\.?$", part, re.M)
        passed += sum(end == "OK" for end, _, _ in tests) if tests else bool(ended_well)
        for end, test, why in tests:
            if end == "SKIPPED":
                skipped[why].add(test)
        faults = [f"{name}: {test}" for end, test, _ in tests if end == "FAILED"]
        failed += faults if faults or ended_well else [name]
    return {"programs": programs, "passed": passed, "skipped": {why: sorted(names) for why, names in skipped.items()}, "failed": failed}


def measure(name, only):
    log = FOLDER / f"{name}.log"
    log.unlink(missing_ok=True)
    version = Debian(log) if name == "debian" else Wheel(name, log)
    result = {"version": name, "torch": name, "cuda": "", "commit": commit_of(ROOT), "date": moment("")["date"]}
    begun = time.monotonic()
    try:
        result.update(version.prepare())
        result["machine"] = describe(version.build)
        if not version.compile():
            raise Failure("does not compile")
        tests = version.build / "tests/client"
        wanted = ["-R", only] if only else []
        call(log, "ctest", "--test-dir", tests, "--output-on-failure", "--timeout", "600", *wanted)
        result.update(read_log((tests / "Testing/Temporary/LastTest.log").read_text(errors="replace")))
    except Failure as failure:
        result["failure"] = str(failure)
    result["seconds"] = round(time.monotonic() - begun)
    return result


def row(result):
    begin = f"| {result['torch']} | {result['cuda']} |"
    if "failure" in result:
        return f"{begin} {result['failure']} | | | | {result['commit']} | {result['date']} |"
    skipped = len(set().union(*result["skipped"].values()))
    return (f"{begin} {result['passed']} | {skipped} | {len(result['failed'])} | {result['programs']} | {result['commit']} | "
            f"{result['date']} |")


def by_suite(names):
    """ "Suite: Test/param, Test/param": one line for each suite."""
    suites = collections.defaultdict(list)
    for name in names:
        suite, test = name.split(".", 1)
        suites[suite].append(test)
    return [f"  - {suite}: {', '.join(tests)}" for suite, tests in sorted(suites.items())]


def section(result):
    lines = [f"## {result['torch']}", ""]
    for why, names in sorted(result.get("skipped", {}).items()):
        lines += [f"- {len(names)} skipped, \"{why}\":"] + by_suite(names)
    failed = result.get("failed", [])
    lines += [f"- failed: {name}" for name in failed] or ["- none failed" if "failed" in result else f"- {result['failure']}"]
    return lines + [""]


def page(results):
    machine = next((result["machine"] for result in results if "machine" in result), {})
    lines = ["# PyTorch versions", "",
             "Written by `tests/run_torch --matrix`: the torch part of the client, built and tested with each; what takes a GPU is skipped.", ""]
    lines += ["| LibTorch | CUDA | tests passed | skipped | failed | programs | commit | date |", "|---|---|---:|---:|---:|---:|---|---|"]
    lines += [row(result) for result in results] + ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()] + [""]
    for result in results:
        lines += section(result)
    return "\n".join(lines)


def order(name):
    """As the numbers have it; the system's first, the newest last."""
    ends = {"debian": (0,), "newest": (99,)}
    return ends.get(name) or tuple(int(number) for number in name.split("."))


def main():
    parser = argparse.ArgumentParser(prog="tests/run_torch --matrix", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"default: {' '.join(VERSIONS)}")
    parser.add_argument("--only", default="", metavar="REGEX", help="of ctest's entries those; no page is written")
    arguments = parser.parse_args()
    chosen = arguments.versions or VERSIONS
    wrong = [name for name in chosen if name not in VERSIONS and not re.fullmatch(r"\d+(\.\d+)+", name)]
    if wrong:
        parser.error(f"no version: {', '.join(wrong)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    failed = False
    for name in chosen:
        print(f"== {name}: build/versions/{name}.log", flush=True)
        result = measure(name, arguments.only)
        failed = failed or "failure" in result or bool(result["failed"])
        print("\n".join([row(result)] + section(result)), flush=True)
        if arguments.only:
            continue
        results[name] = result
        kept.write_text(json.dumps(results, indent=1))
        PAGE.write_text(page([results[known] for known in sorted(results, key=order)]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
