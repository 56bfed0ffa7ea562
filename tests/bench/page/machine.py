"""Where figures are from: machine, system, compiler, commit."""
import datetime
import os
import pathlib
import re
import subprocess


def said(*command, cwd=None):
    try:
        return subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def found(pattern, path):
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    except OSError:
        match = None
    return match.group(1).strip() if match else "unknown"


def commit_of(root, *folders):
    """With a word where the work tree has changes to it, in these folders if any are named."""
    commit = said("git", "rev-parse", "--short=12", "HEAD", cwd=root) or "unknown"
    return commit + ", changed" if said("git", "status", "--porcelain", "--", *folders, cwd=root) else commit


def describe(build):
    """What figures are of: those of another machine or compiler do not go on one page with them."""
    compiler = found(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", build / "CMakeCache.txt")
    memory = int(found(r"^MemTotal:\s+(\d+)", "/proc/meminfo").replace("unknown", "0")) / 2**20
    return {
        "processor": found(r"^model name\s*:\s*(.*)$", "/proc/cpuinfo"),
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "memory": f"{memory:.0f} GiB",
        "system": found(r'^PRETTY_NAME="(.*)"$', "/etc/os-release") + ", Linux " + os.uname().release.split("-")[0],
        "compiler": said(compiler, "--version").split("\n")[0] or compiler,
        "build": found(r"^CMAKE_BUILD_TYPE:\w+=(.*)$", build / "CMakeCache.txt"),
    }


def moment(cpus):
    """When a section was begun, and beside what."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "bound to": cpus or "all",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
