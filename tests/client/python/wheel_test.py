"""What users install: the files of a wheel, and pip's own way to it.

pip compiles the package anew, for minutes, so that tests/run installs the build tree's component instead, which is what a
wheel is made of; tests/run_torch --matrix builds the wheel (STOWAGE_WHEEL=1).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "client/python/stowage"

# In a folder of its own, with nothing of the build tree on the path.
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import stowage
assert stowage.__file__.startswith(sys.argv[1]), stowage.__file__
stage = dict(forward_time_ns=10, backward_time_ns=20, output_bytes=100, output_gradient_bytes=100, saved_bytes=300)
plan = stowage.Profile.of_chain([stage] * 8, input_bytes=100).plan("60%")
assert plan.peak_bytes <= plan.budget_bytes
if sys.argv[2] == "with contract":
    from stowage.v1 import plan_pb2
try:
    import torch
except ImportError:
    sys.exit()
blocks = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(8)]
model = stowage.wrap(torch.nn.Sequential(*blocks), "60%")
for _ in range(2):
    model(torch.randn(128, 64)).sum().backward()
assert model.stowage.measured_peak_bytes <= model.stowage.plan.peak_bytes
assert model.stowage.plan.recomputed_forwards > 0
"""


def called(*command, **how):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **how)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def needs(library):
    """The libraries that the system has to load with it."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", called("readelf", "-d", library))


def check_installed(folder, tmp_path, has_contract):
    """The package, its extensions and the contract; what is the environment's stays there."""
    files = [path.relative_to(folder / "stowage") for path in (folder / "stowage").rglob("*") if path.is_file()]
    names = {str(path) for path in files if path.suffix == ".py" and path.parts[0] != "v1"}
    assert names == {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    # What type checkers read.
    typing = {str(path) for path in files if path.suffix == ".pyi" or path.name == "py.typed"}
    assert typing == {"py.typed", *(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.pyi"))}
    assert {"_core.pyi", "_torch.pyi"} <= typing
    extensions = [folder / "stowage" / path for path in files if ".so" in path.name]
    stems = [path.name.split(".")[0] for path in extensions]
    assert sorted(stems) in (["_core"], ["_core", "_torch"]), "libraries of others are packed, too"
    contract = {path.name for path in files if path.parts[0] == "v1"}
    if has_contract:
        admin = {"plan_admin_service_pb2.py", "plan_admin_service_pb2_grpc.py"}
        assert contract >= {"plan_pb2.py", "plan_service_pb2.py", "plan_service_pb2_grpc.py", *admin}
    for extension in extensions:
        allowed = r"libc10\.|libtorch_cpu\." if extension.name.startswith("_torch") else r"$"
        of_others = [name for name in needs(extension) if re.match(r"lib(torch|c10|protobuf|grpc)", name)]
        assert all(re.match(allowed, name) for name in of_others), of_others
        assert b"google8protobuf" not in extension.read_bytes()
    assert sum((folder / "stowage" / path).stat().st_size for path in files) < 32 << 20
    called(sys.executable, "-I", "-c", USE, folder, "with contract" if has_contract else "", cwd=tmp_path)


def test_what_the_build_tree_installs(tmp_path):
    build = os.environ["STOWAGE_BUILD"]
    folder = pathlib.Path(build, "client/python")
    has_contract = "stowage/v1" in (folder / "cmake_install.cmake").read_text()  # where protoc is
    if has_contract and not (folder / "stowage/v1/plan_admin_service_pb2.py").exists():
        pytest.skip("stowage.v1 is not built (target stowage_python_proto)")
    site = tmp_path / "site"
    called("cmake", "--install", build, "--component", "python", "--prefix", site)
    # What scikit-build-core packs beside that.
    for source in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi"), PACKAGE / "py.typed"]:
        target = site / "stowage" / source.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    check_installed(site, tmp_path, has_contract)


@pytest.mark.skipif(os.environ.get("STOWAGE_WHEEL") != "1", reason="pip builds the package in tests/run_torch --matrix")
def test_what_pip_makes_and_installs(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    options = ["--no-build-isolation", "--no-deps", "--no-index"]
    called(*pip, "wheel", *options, "--wheel-dir", tmp_path, ROOT / "client/python")
    (wheel,) = tmp_path.glob("stowage-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert not [name for name in packed.namelist() if not re.match(r"stowage(-[0-9.]+\.dist-info)?/", name)]
    site = tmp_path / "site"
    called(*pip, "install", "--no-deps", "--no-index", "--target", site, wheel)
    check_installed(site, tmp_path, (site / "stowage/v1").is_dir())


PLANS_ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
import stowage
import torch
stage = dict(forward_time_ns=10, backward_time_ns=20, output_bytes=100, output_gradient_bytes=100, saved_bytes=300)
assert stowage.Profile.of_chain([stage] * 8, input_bytes=100).plan("60%").recomputed_forwards > 0
try:
    stowage.wrap(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), "60%")
except stowage.FailedPrecondition as error:
    print(error)
"""


@pytest.mark.skipif(os.environ.get("STOWAGE_WHEEL") != "1", reason="pip builds the package in tests/run_torch --matrix")
@pytest.mark.skipif("python_torch" not in sys.executable, reason="once is enough: beside Debian's PyTorch")
def test_what_pip_builds_by_itself_plans_alone(tmp_path):
    """In an environment of pip's own, which has no PyTorch: with it beside, the package says why it does not train."""
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    called(*pip, "install", "--no-deps", "--target", site, ROOT / "client/python")
    assert sorted(path.name.split(".")[0] for path in (site / "stowage").glob("*.so")) == ["_core"]
    said = called(sys.executable, "-I", "-c", PLANS_ALONE, site, cwd=tmp_path)
    assert "--no-build-isolation" in said, said
