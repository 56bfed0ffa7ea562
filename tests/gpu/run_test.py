#!/usr/bin/env python3
"""What tests/gpu/run and tests/run_torch make of a machine's tools and packages: made up ones, and a CMake that says how it is called."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import report

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ["bash", "dirname", "env", "grep", "head", "nproc", "realpath", "sed"]


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def program(path, text):
    write(path, f"#!{shutil.which('bash')}\n{text}\n").chmod(0o755)


class Machine:
    """Tools in a folder of its own, which is the path, and a PyTorch as pip installs it."""

    def __init__(self, folder, *tools):
        self.folder, self.path = folder, folder / "bin"
        self.path.mkdir(parents=True)
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool))
        for tool in tools:
            program(self.path / tool, "exit 0")
        self.packages = folder / "site-packages"
        self.prefix = self.packages / "torch/share/cmake"
        write(self.prefix / "Torch/TorchConfig.cmake")
        write(self.packages / "torch/lib/libtorch.so")

    def add_cmake(self):
        program(self.path / "cmake", f'printf "%s\\n" "$@" > {self.folder}/arguments')

    def call(self, *command, **environment):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env={"PATH": str(self.path), "CUDACXX": "/nowhere/nvcc", **environment})

    def configure(self, **environment):
        """How CMake was called, or None; and what was said on standard error."""
        called = self.folder / "arguments"
        called.unlink(missing_ok=True)
        done = self.call(HERE.parent / "run_torch", "--configure", self.prefix, self.folder / "build", **environment)
        assert (done.returncode == 0) == called.exists(), done
        return called.read_text().splitlines() if called.exists() else None, done.stderr


def check_what_is_missing(folder):
    machine = Machine(folder / "bare")
    out = folder / "bare/out"
    run = [sys.executable, HERE / "run", f"--out={out}", f"--carried={folder}/bare/carried", "--only=configure"]
    done = machine.call(*run)
    assert done.returncode == 1 and done.stdout.count("\n") == 1, done
    for words in ("this machine lacks", "CMake 3.25", "a C++ compiler", "ninja or make", "what is carried"):
        assert words in done.stdout, done
    for tool in ("cmake", "c++", "make"):
        program(machine.path / tool, "exit 0")
    assert "this machine lacks what is carried" in machine.call(*run).stdout
    (folder / "bare/carried/lib/some").mkdir(parents=True)
    program(folder / "bare/python", "echo No module named torch >&2; exit 1")
    assert "has no PyTorch: No module named torch" in machine.call(*run, f"--python={folder}/bare/python").stdout
    # What run_torch says is one line, too.
    done = machine.call(*run, f"--prefix={folder}/nothing")
    assert done.stdout.startswith("configure: ended with 2: tests/run_torch: no Torch/TorchConfig.cmake in"), done
    assert done.stdout.count("\n") == 1, done


def check_generators(folder):
    machine = Machine(folder / "tools")
    machine.add_cmake()
    called, said = machine.configure()
    assert called is None and said == "tests/run_torch: there is neither ninja nor make here\n", said
    for tool, generator in (("make", "Unix Makefiles"), ("ninja", "Ninja")):
        program(machine.path / tool, "exit 0")
        called, said = machine.configure()
        assert called[called.index("-G") + 1] == generator and "--fresh" not in called, called
    # A build that was made for another tool is made anew.
    write(folder / "tools/build/CMakeCache.txt", "CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n")
    assert "--fresh" in machine.configure()[0]


def check_cuda(folder):
    machine = Machine(folder / "cuda", "ninja")
    machine.add_cmake()
    assert not any("CUDA" in word for word in machine.configure()[0])
    write(machine.packages / "torch/lib/libtorch_cuda.so")
    homes = machine.packages / "nvidia/cu99"
    write(homes / "include/cuda_runtime_api.h")
    library = write(homes / "lib/libcudart.so.99")
    called, said = machine.configure()
    if not pathlib.Path("/usr/local/cuda/include").exists():
        assert called is None and said.count("\n") == 1 and "there is no nvcc at /nowhere/nvcc" in said, said
    triton = machine.packages / "triton/backends/nvidia/include"
    write(triton / "crt/host_defines.h")
    called, _ = machine.configure()
    assert f"-DSTOWAGE_CUDA_RUNTIME={library}" in called, called
    assert f"-DSTOWAGE_CUDA_HEADERS={homes}/include;{triton}" in called, called
    # A toolkit without its compiler; then with it, which PyTorch's own files find.
    toolkit = folder / "cuda/toolkit"
    for file in ("include/cuda_runtime_api.h", "include/crt/host_defines.h", "lib64/libcudart.so"):
        write(toolkit / file)
    called, _ = machine.configure(CUDA_HOME=str(toolkit))
    assert f"-DSTOWAGE_CUDA_HEADERS={toolkit}/include;{toolkit}/include" in called, called
    program(toolkit / "bin/nvcc", "exit 0")
    assert not any("CUDA" in word for word in machine.configure(CUDACXX=str(toolkit / "bin/nvcc"))[0])


def check_packed(folder):
    """A build from elsewhere is unpacked, and its programs find their libraries beside them and in the PyTorch here."""
    packed, out = folder / "packed", folder / "packed/out"
    program(packed / "built/bin/gpu_report", f'echo "$LD_LIBRARY_PATH" > {folder}/packed/path')
    program(packed / "built/tests/client/torch/some_test", f"case \"$1\" in --gtest_list_tests) echo 'Suite.'; echo '  a/cuda'; echo '  b/cuda' ;; "
            "*) echo '[  PASSED  ] 1 test.' ;; esac")
    subprocess.run(["tar", "cJf", packed / "built.tar.xz", "-C", packed, "built"], check=True)
    shutil.rmtree(packed / "built")
    site = folder / "packed/site"
    (site / "nvidia/cu99/lib").mkdir(parents=True)
    program(packed / "python", f"echo {site}/torch")
    done = subprocess.run([sys.executable, HERE / "run", f"--out={out}", f"--packed={packed}", f"--python={packed}/python", "--only=tests",
                           "--only=report.link"], capture_output=True, text=True)
    assert done.returncode == 0, done
    assert (packed / "path").read_text().startswith(f"{packed}/built/lib:{site}/torch/lib:{site}/nvidia/cu99/lib:"), (packed / "path").read_text()
    assert report.read(out / "rows.jsonl")["tests"] == {"row": "tests", "programs": 1, "tests": 1, "skipped": 1, "failed": []}


def check_command(folder):
    """Rows of the command's steps: those that are there are not made again, and what failed is."""
    out, built = folder / "command/out", folder / "command/built"
    answer = {"device": "cuda:1", "form": "chain", "equal": True, "plain": {"spread": None}, "budgets": [
        {"budget": "least", "status": "found", "solver": "s", "faults": [], "predicted": {"peak_bytes": 100, "step_time_ns": 7},
         "measured": {"peak_bytes": 99, "step_time_ns": 8}, "recomputed_forwards": {"planned": 2, "executed": 2}}]}
    write(folder / "command/answer", json.dumps(answer))
    stowage = built / "bin/stowage"
    program(stowage, f'echo "$@" >> {folder}/command/calls\ncase "$1" in\nprofile) for word; do case "$word" in --out=*) '
                     f'echo \'{{"device": {{"model": "G"}}, "graph": {{}}}}\' > "${{word#--out=}}" ;; esac; done ;;\n'
                     f'run) cat {folder}/command/answer ;;\n*) echo no >&2; exit 1 ;;\nesac')
    call = [sys.executable, HERE / "run", f"--out={out}", f"--built={built}", "--device=cuda:1", "--only=command.chain"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 1 and "command.chain: verify ended with 1: no" in done.stdout, done
    rows = report.read(out / "rows.jsonl")
    assert rows["command/chain/profile"] == {"row": "command/chain/profile", "device": "G", "form": "graph"}, rows
    assert rows["command/chain/run"]["budgets"][0]["peak_bytes"] == 99 and rows["command/chain/run"]["as_plain"], rows
    assert rows["command/chain/verify"]["error"] == "ended with 1: no", rows
    program(stowage, f'echo "again $1" >> {folder}/command/calls; cat {folder}/command/answer')
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done
    calls = (folder / "command/calls").read_text()
    assert "--device=cuda:1" in calls and "--model=resnet50" in calls, calls
    assert calls.endswith("again verify\n") and calls.count("again") == 1, calls
    stowage.unlink()
    assert "cannot run" in subprocess.run([*call, "--only=command.graph"], capture_output=True, text=True).stdout


def check_skips(folder):
    out = folder / "skips"
    program(folder / "python", "exit 1")
    done = subprocess.run([sys.executable, HERE / "run", f"--out={out}", "--only=python", f"--python={folder}/python"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "python: skipped:" in done.stdout and "1 skipped: python" in done.stdout, done


if __name__ == "__main__":
    os.chdir(HERE)
    with tempfile.TemporaryDirectory() as made:
        place = pathlib.Path(made).resolve()
        for check in (check_what_is_missing, check_generators, check_cuda, check_packed, check_command, check_skips):
            check(place)
