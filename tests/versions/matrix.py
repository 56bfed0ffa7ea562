#!/usr/bin/env python3
"""Builds and tests the torch part of the client with several LibTorchs, and writes a page of what passed, was skipped and failed.

A VERSION is debian (the system's), newest, or a number such as 2.11, of PyTorch as pip installs it. README.md beside this says more.
"""
import argparse
import collections
import hashlib
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
VERSIONS = ["debian", "2.11", "newest"]
# Of a PyTorch: its version, that of its CUDA or nothing, and where CMake finds it.
ASK = "import torch; print(torch.__version__, torch.version.cuda or '-', torch.utils.cmake_prefix_path)"


def digest_of_sources():
    """Of the contents of what the page is of, Markdown aside, whether committed or not; empty outside a clone of git."""
    listed = answer("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "client/torch", "client/python")
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


def read_log(text):
    """What ctest's own log says of the tests in C++ and in Python, each: programs, tests passed, {reason: [test that was skipped]},
    [test or program that failed]."""
    kinds = {kind: {"programs": 0, "passed": 0, "skipped": {}, "failed": []} for kind in ("cpp", "python")}
    for part in re.split(r"^\d+/\d+ Test: ", text, flags=re.M)[1:]:
        lines = part.split("\n")
        name = lines[0].strip()
        by_pytest = " -m pytest " in f"{lines[1]} ".replace('"', "")
        counts = kinds["python" if by_pytest else "cpp"]
        tests = read_pytest(lines) if by_pytest else read_gtest(lines)
        ended_well = re.search(r"^Test (Passed|Skipped)\.?$", part, re.M)
        counts["programs"] += 1
        counts["passed"] += sum(end == "OK" for end, _, _ in tests) if tests else bool(ended_well)
        for _, test, why in (each for each in tests if each[0] == "SKIPPED"):
            counts["skipped"].setdefault(why, set()).add(test)
        faults = [f"{name}: {test}" for end, test, _ in tests if end == "FAILED"]
        counts["failed"] += faults if faults or ended_well else [name]
    for counts in kinds.values():
        counts["skipped"] = {why: sorted(names) for why, names in counts["skipped"].items()}
    return kinds


def measure(name, only, of):
    log = FOLDER / f"{name}.log"
    log.unlink(missing_ok=True)
    version = Debian(log) if name == "debian" else Wheel(name, log)
    result = {"version": name, "torch": name, "cuda": "", **of, "date": moment("")["date"]}
    begun = time.monotonic()
    try:
        result.update(version.prepare())
        result["machine"] = describe(version.build)
        if not version.compile():
            raise Failure("does not compile")
        tests = version.build / "tests/client"
        wanted = ["-R", only] if only else []
        call(log, "ctest", "--test-dir", tests, "--output-on-failure", "--timeout", "600", "--parallel", os.cpu_count(), *wanted)
        result.update(read_log((tests / "Testing/Temporary/LastTest.log").read_text(errors="replace")))
    except Failure as failure:
        result["failure"] = str(failure)
    finally:
        version.finish()
    result["seconds"] = round(time.monotonic() - begun)
    return result


def row(result):
    cells = [result["torch"], result["cuda"]]
    if "failure" in result:
        cells += [result["failure"]] + [""] * 7
    else:
        for counts in (result["cpp"], result["python"]):
            cells += [counts["programs"], counts["passed"], len(set().union(*counts["skipped"].values())), len(counts["failed"])]
    return f"| {' | '.join(str(cell) for cell in cells)} | {result['commit']} | {result['sources']} | {result['date']} |"


def by_suite(names):
    """ "Suite: Test/param, Test/param": one line for each suite, or file of pytest's."""
    suites = collections.defaultdict(list)
    for name in names:
        suite, _, test = name.partition("::" if ".py" in name else ".")
        suites[suite].append(test or "all of it")
    return [f"  - {suite}: {', '.join(tests)}" for suite, tests in sorted(suites.items())]


def failures(result):
    return result["cpp"]["failed"] + result["python"]["failed"]


def section(result):
    lines = [f"## {result['torch']}", ""]
    if "failure" in result:
        return lines + [f"- {result['failure']}", ""]
    for counts in (result["cpp"], result["python"]):
        for why, names in sorted(counts["skipped"].items()):
            lines += [f"- {len(names)} skipped, \"{why}\":"] + by_suite(names)
    return lines + ([f"- failed: {name}" for name in failures(result)] or ["- none failed"]) + [""]


def read_page(text):
    """What is on a page already: {what is said of the machine}, {LibTorch: (its row, the lines of its section)}."""
    rows = {line.split(" | ")[0][2:]: line for line in text.split("\n") if re.match(r"\| \S.* UTC \|$", line)}
    machine = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.M))
    parts = re.split(r"^## (.*)$", text, flags=re.M)
    sections = {title: [f"## {title}"] + lines.rstrip("\n").split("\n")[1:] + [""] for title, lines in zip(parts[1::2], parts[2::2])}
    return machine, {title: (line, sections[title]) for title, line in rows.items() if title in sections}


def page(machine, entries):
    lines = ["# PyTorch versions", "",
             "Written by `tests/run_torch --matrix`: the torch part of the client and the Python package, built and tested with each; with",
             "Debian's the rest of the client, too. What takes a GPU is skipped.", "",
             "| LibTorch | CUDA | programs in C++ | tests passed | skipped | failed | runs of pytest | tests passed | skipped | failed "
             "| commit | sources | date |", "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---|---|"]
    ordered = [entries[title] for title in sorted(entries, key=order)]
    lines += [line for line, _ in ordered] + ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()] + [""]
    return "\n".join(sum((lines_of for _, lines_of in ordered), lines))


def order(title):
    """The system's first, then as the numbers have it."""
    return "Debian" not in title, [int(number) for number in re.findall(r"\d+", title)], title


def on_page(known, result, sources, all_asked_for):
    """The entries with this result. Those of other sources stay until all versions are measured."""
    stays = {title: entry for title, entry in known.items() if not all_asked_for or f"| {sources} |" in entry[0]}
    stays.pop(result["version"], None)  # it failed before anybody knew which one it is
    return {**stays, result["torch"]: (row(result), section(result))}


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
    # At the beginning: the page is written after each version, and changes the tree.
    of = {"sources": digest_of_sources(), "commit": commit_of(ROOT)}
    failed = False
    for name in chosen:
        print(f"== {name}: build/versions/{name}.log", flush=True)
        result = measure(name, arguments.only, of)
        failed = failed or "failure" in result or bool(failures(result))
        print("\n".join([row(result)] + section(result)), flush=True)
        if arguments.only:
            continue
        machine, known = read_page(PAGE.read_text() if PAGE.exists() else "")
        PAGE.write_text(page(result.get("machine", machine), on_page(known, result, of["sources"], set(VERSIONS) <= set(chosen))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
