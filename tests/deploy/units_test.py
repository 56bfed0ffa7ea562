#!/usr/bin/env python3
"""The unit of systemd, installed into a folder: systemd-analyze verifies and rates it, sysusers makes its user, and what it says of times
and memory fits what the configuration says.

    units_test.py BIN_DIRECTORY DEPLOY_DIRECTORY

Exits with 77, "skipped", where systemd-analyze is missing.
"""
import configparser
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_programs  # noqa: E402

from settings import check_fit, conf_values, quantity, seconds  # noqa: E402

MOST_EXPOSED = 1.5  # of 10, as systemd rates it
SYSTEM_UNITS = pathlib.Path("/usr/lib/systemd/system")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=60, **more)


def install(deploy, binaries, root):
    done = run(deploy / "systemd" / "install", binaries, root)
    assert done.returncode == 0, done.stderr
    again = run(deploy / "systemd" / "install", binaries, root)
    assert again.returncode == 0, f"not twice: {again.stderr}"
    units = root / "usr/lib/systemd/system"
    # What every unit is ordered by.
    for kind in ("*.target", "*.slice"):
        for unit in SYSTEM_UNITS.glob(kind):
            if not (units / unit.name).exists():
                shutil.copyfile(unit, units / unit.name)
    return units / "stowaged.service"


def check_unit(root):
    done = run("systemd-analyze", "verify", f"--root={root}", "--man=no", "stowaged.service")
    assert done.returncode == 0 and not done.stderr.strip(), f"systemd-analyze verify: {done.stderr}"
    rated = run("systemd-analyze", "security", "--offline=true", f"--root={root}", f"--threshold={int(10 * MOST_EXPOSED)}",
                "stowaged.service")
    assert rated.returncode == 0, f"more exposed than {MOST_EXPOSED}: {rated.stdout}"
    print("unit:", rated.stdout.strip().splitlines()[-1].strip("→ "))


def check_that_mistakes_are_seen(root, unit):
    text = unit.read_text()
    unit.write_text(text.replace("ProtectSystem=strict", "ProtectSystem=strictly"))
    done = run("systemd-analyze", "verify", f"--root={root}", "--man=no", "stowaged.service")
    assert "strictly" in done.stderr, f"a wrong value is not seen: {done.stderr}"
    unit.write_text(text.replace("/usr/bin/stowaged ", "/usr/bin/nobody "))
    done = run("systemd-analyze", "verify", f"--root={root}", "--man=no", "stowaged.service")
    assert done.returncode != 0, "a program that is not there is not seen"
    unit.write_text(text)


def check_user(root, unit):
    (root / "etc").mkdir(exist_ok=True)
    done = run("systemd-sysusers", f"--root={root}", root / "usr/lib/sysusers.d/stowage.conf")
    assert done.returncode == 0, done.stderr
    names = [line.split(":")[0] for line in (root / "etc/passwd").read_text().splitlines()]
    assert unit["User"] in names, names
    print("user:", unit["User"])


def check_what_it_says(root, unit, conf):
    program, *arguments = unit["ExecStart"].split()
    assert os.access(root / program.lstrip("/"), os.X_OK), program
    path = dict(argument.lstrip("-").split("=", 1) for argument in arguments)["config"]
    assert (root / path.lstrip("/")).exists(), f"{path} is not installed"
    check_fit(conf, quantity(unit["MemoryMax"]), seconds(unit["TimeoutStopSec"]), pause=0)
    print("limits fit the configuration")


def main():
    need_programs("systemd-analyze", "systemd-sysusers")
    binaries, deploy = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        unit = install(deploy, binaries, root)
        check_unit(root)
        check_that_mistakes_are_seen(root, unit)
        # The last of equal names counts; none of those that are looked at here comes twice.
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        parser.read(unit)
        check_user(root, parser["Service"])
        check_what_it_says(root, parser["Service"], conf_values(root / "etc/stowage/stowaged.conf"))
    print("passed")


if __name__ == "__main__":
    main()
