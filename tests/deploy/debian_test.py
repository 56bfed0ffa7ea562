#!/usr/bin/env python3
"""The packages for Debian, as cpack makes them of a build, through a life in a folder: installed, upgraded, removed, purged.

    debian_test.py BUILD_DIRECTORY

Exits with 77, "skipped", where a program is missing.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_programs  # noqa: E402

PACKAGES = ("stowage", "stowage-common", "stowage-torch", "stowaged")
CONFIGURATION = "etc/stowage/stowaged.conf"
LIBRARIES = {"stowaged": ("libgrpc++1.51", "libsqlite3-0", "systemd"), "stowage": ("libgrpc++1.51", "stowage-common"),
             "stowage-torch": ("libtorch1.13", "stowage"), "stowage-common": ()}


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=250)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def made(build, folder):
    """Package files by name."""
    run("cpack", "--config", build / "CPackConfig.cmake", "-B", folder)
    files = {path.name.split("_")[0]: path for path in folder.glob("*.deb")}
    assert sorted(files) == sorted(PACKAGES), files
    return files


def field(file, name):
    return run("dpkg-deb", "-f", file, name).strip()


def check_packages(files):
    owners = {}
    for name, file in files.items():
        depends = {word.split()[0] for word in field(file, "Depends").split(",") if word}
        assert depends >= set(LIBRARIES[name]), f"{name} does not depend on {set(LIBRARIES[name]) - depends}"
        for line in run("dpkg-deb", "-c", file).splitlines():
            mode, owner, *_, path = line.split()
            assert owner == "root/root", line
            if mode.startswith("-"):
                assert path not in owners, f"{path} is in {owners[path]} and in {name}"
                owners[path] = name
                assert mode[5] == mode[8] == "-", f"others may write: {line}"
    assert len({field(file, "Version") for file in files.values()}) == 1
    print(f"{len(files)} packages, {len(owners)} files, each in one")


class Root:
    """A folder that packages are installed in. What they depend on is this machine's."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"):
            (folder / part).mkdir(parents=True)
        (folder / "var/lib/dpkg/status").touch()

    def __truediv__(self, path):
        return self.folder / path

    def dpkg(self, *arguments):
        run(*([] if os.geteuid() == 0 else ["fakeroot"]), "dpkg", f"--root={self.folder}", f"--log={self.folder}/var/log/dpkg.log",
            "--force-depends", "--force-script-chrootless", *arguments)



def check_programs(root):
    """They run, with the catalogue beside them, and need nothing that only the machine of the build has."""
    assert "listen = 127.0.0.1:7070" in run(root / "usr/bin/stowaged", "--check_config", f"--config={root / CONFIGURATION}")
    assert "resnet50" in run(root / "usr/bin/stowage", "catalogue", "ls")
    assert "verify" in run(root / "usr/bin/stowage", "verify", "--help")
    run(root / "usr/bin/stowage_probe", "--help")
    for program in ("bin/stowage", "bin/stowaged", "bin/stowage_probe", "libexec/stowage/stowage-torch.so"):
        assert "RUNPATH" not in run("readelf", "-d", root / "usr" / program), program
    unit = (root / "usr/lib/systemd/system/stowaged.service").read_text()
    assert "ExecStart=/usr/bin/stowaged --config=/etc/stowage/stowaged.conf" in unit
    assert "stowage:" in (root / "etc/passwd").read_text(), "no user"


def check_life(root, files):
    root.dpkg("--install", *files.values())
    check_programs(root)

    conf, plans = root / CONFIGURATION, root / "var/lib/stowage/plans.db"
    conf.write_text(conf.read_text() + "queue_limit = 64\n")
    plans.parent.mkdir(parents=True)
    plans.write_text("plans")
    root.dpkg("--install", files["stowaged"])
    assert "queue_limit" in conf.read_text() and plans.exists(), "an upgrade loses what is the operator's"

    root.dpkg("--remove", "stowage-torch")
    done = subprocess.run([root / "usr/bin/stowage", "verify", "--model=resnet18"], text=True, capture_output=True)
    assert done.returncode and "stowage-torch" in done.stderr, f"{done.returncode}: {done.stderr}"
    assert "resnet50" in run(root / "usr/bin/stowage", "catalogue", "ls")

    root.dpkg("--remove", "stowaged")
    assert not (root / "usr/bin/stowaged").exists() and conf.exists() and plans.exists(), "what a removal leaves"
    root.dpkg("--purge", "stowaged")
    assert not conf.exists() and not plans.exists(), "what a purge leaves"
    root.dpkg("--purge", *files)
    left = [path for path in (root / "usr").rglob("*") if path.is_file()]
    assert not left, left
    print("installed, upgraded, removed, purged")


def main():
    as_root = [] if os.geteuid() == 0 else ["fakeroot"]
    need_programs("cpack", "dpkg", "dpkg-deb", "dpkg-shlibdeps", "file", "readelf", "systemd-sysusers", *as_root)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = made(pathlib.Path(sys.argv[1]).resolve(), folder / "packages")
        check_packages(files)
        (folder / "root").mkdir()
        check_life(Root(folder / "root"), files)
    print("passed")


if __name__ == "__main__":
    main()
