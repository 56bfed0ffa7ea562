#!/usr/bin/env python3
"""Every flag, variable, metric, label, port and health service that deploy/ names is one of the binaries'.

    names_test.py BIN_DIRECTORY DEPLOY_DIRECTORY

The truth is `--help`, a scrape, and a health check of a server that runs. Exits with 77, "skipped", where a package is missing.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, need_programs, start, use_environment  # noqa: E402

import plan_load  # noqa: E402

# Options of one word of the other programs that deploy/ runs: of its own scripts, of cmake, buildah, docker, podman, nsenter, redis-server,
# redis-cli, systemctl, helm; and the commands of `stowage` that it runs.
OTHERS = set("help tests checks build target install now from interval timeout maxmemory save appendonly requirepass image variant include "
             "quiet rm mount format tag file root runroot tmpdir runtime detach pull name ulimit network memory volume env user force ignore "
             "time net isolation namespace values set preset port cacert".split())
COMMANDS = ["plan"], ["catalogue", "export"], ["catalogue", "environment"]
RUN_BY_TESTS = {"main_job", "quickstart", "release", "setup"}  # the scripts, which are run
METRIC = re.compile(r"(?<![:\w])(?:stowage|grpc_server|process)_\w+(?![:\w])")
RECORDED = re.compile(r"\b[a-z_]+:\w+:\w+\b")
SELECTOR = re.compile(r"((?:stowage|grpc_server|process)_\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
OF_TARGETS = {"job", "instance", "namespace", "pod"}  # labels that Prometheus gives


def flags_of(program, *command):
    text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True, timeout=20).stdout
    return set(re.findall(r"^\s*--([a-z_]+)", text, re.M))


def texts(deploy):
    for path in sorted(deploy.rglob("*")):
        if path.is_file() and path.name not in RUN_BY_TESTS:
            yield path.relative_to(deploy), path.read_text()


def check_flags(deploy, server, probe, commands):
    seen = variables = 0
    for path, text in texts(deploy):
        for name in re.findall(r"(?<![\w-])--([a-z][a-z_]*)(?![\w.-])", text):
            seen += 1
            assert name in server | probe | commands | OTHERS, f"{path}: --{name} is no flag of stowaged, stowage_probe or stowage"
        for line in re.findall(r"stowage_probe\S*((?:[\",\s]+--[\w]+(?:=[^\s\",]*)?)+)", text):
            for name in re.findall(r"--(\w+)", line):
                assert name in probe, f"{path}: stowage_probe has no --{name}"
        for name in re.findall(r"\bSTOWAGED_([A-Z_]+)\b", text):
            variables += 1
            assert name.lower() in server, f"{path}: STOWAGED_{name} is the variable of no flag"
    assert seen > 20 and variables > 10, (seen, variables)
    print(f"{seen} flags and {variables} variables, all known")


def families_of(scrape):
    """Of each metric, as it is scraped, the values of each label."""
    labels = {}
    for line in scrape.splitlines():
        if line and line[0] != "#":
            name, inside = re.match(r"(\w+)(?:\{(.*)\})? ", line).groups()
            values = labels.setdefault(name, {})
            for label, value in re.findall(r'(\w+)="([^"]*)"', inside or ""):
                values.setdefault(label, set()).add(value)
    return labels


def expressions(deploy, yaml):
    """All queries, each with where it is."""
    recorded = set()
    found = []
    for file in sorted((deploy / "monitoring").glob("*.rules.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                recorded |= {rule["record"]} if "record" in rule else set()
                found.append((rule.get("record", rule.get("alert")), rule["expr"]))
    dashboard = json.loads((deploy / "monitoring" / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", [])]
    found += [(variable["name"], variable["query"]["query"]) for variable in dashboard["templating"]["list"]
              if variable["type"] == "query"]
    return found, recorded


def check_matchers(where, expression, metrics):
    """Labels are there, and each value that is asked for is one that some series has."""
    for metric, inside in SELECTOR.findall(expression):
        for label, operator, value in MATCHER.findall(inside):
            if label in OF_TARGETS:
                continue
            assert label in metrics[metric], f"{where}: {metric} has no label {label}"
            for one in value.split("|") if "~" in operator else [value]:
                assert one in metrics[metric][label], f'{where}: {metric} never has {label}="{one}"'


def check_metrics(deploy, metrics, yaml):
    found, recorded = expressions(deploy, yaml)
    used = set()
    for where, expression in found:
        for name in METRIC.findall(expression):
            used.add(name)
            assert name in metrics, f"{where}: there is no metric {name}"
        for name in RECORDED.findall(expression):
            used.add(name)
            assert name in recorded, f"{where}: nothing records {name}"
        check_matchers(where, expression, metrics)
    assert recorded <= used, f"recorded, and nobody asks for it: {recorded - used}"
    assert len(used) > 40, used
    print(f"{len(used)} metrics in {len(found)} queries, all known")


def check_page(deploy, scrape):
    """The page for operators names every metric that is scraped, and no other."""
    page = (deploy.parent / "server" / "operating.md").read_text()
    named = set(re.findall(r"`((?:stowage|grpc_server|process)_[a-z_]+)`", page)) - {"stowage_probe"}
    scraped = set(re.findall(r"^# TYPE (\w+) ", scrape, re.M)) - {"exposer_transferred_bytes_total", "exposer_scrapes_total",
                                                                  "exposer_request_latencies"}
    assert named == scraped, f"operating.md and the scrape differ: {named ^ scraped}"
    print(f"operating.md names the {len(scraped)} metrics")


def check_version(deploy, programs):
    """Programs, project and the images that are asked for are of one version."""
    printed = {subprocess.check_output([program, "--version"], text=True).split()[1] for program in programs}
    project = re.search(r"^project\(stowage VERSION ([\d.]+)", (deploy.parent / "CMakeLists.txt").read_text(), re.M).group(1)
    chart = set(re.findall(r"^(?:version|appVersion): (\S+)", (deploy / "helm/Chart.yaml").read_text(), re.M))
    assert printed == chart == {project}, f"programs say {printed}, the chart {chart}, the project is {project}"
    tags = [(path, tag) for path, text in texts(deploy) for tag in re.findall(r"stowaged(?:, newTag: |:)(\d[\w.-]*)", text)]
    assert len(tags) >= 4, tags
    for path, tag in tags:
        assert tag == project, f"{path}: an image of {tag}, the project is {project}"
    print(f"version {project}, {len(tags)} tags of images")


def check_images(deploy):
    """README.md lists the images of others by the tags that are asked for, and none has a digest: nobody here has looked at one."""
    asked = set()
    for path, text in texts(deploy):
        if path.suffix != ".md":
            asked |= set(re.findall(r"^\s*image: ([\w./-]+:[\w.-]+)", text, re.M)) | set(re.findall(r"^ARG BASE=(\S+)$", text, re.M))
            asked |= {":".join(pair) for pair in re.findall(r"\{name: ([\w./-]+), newTag: ([\w.-]+)\}", text)}
            assert not re.search(r"sha256:[0-9a-f]{64}", text), f"{path}: a digest"
    asked = {image for image in asked if not image.startswith("stowaged:")}
    section = (deploy / "README.md").read_text().split("## Images")[1]
    listed = {image for line in section.splitlines() if line.startswith("| `") for image in re.findall(r"`([\w./-]+:[\w.-]+)`", line)}
    assert asked == listed, f"images asked for and listed: {asked ^ listed}"
    stages = re.findall(r"^FROM (\S+)", (deploy / "container/Containerfile").read_text(), re.M)
    assert stages == ["${BASE}", "${BASE}"], f"a stage that --build-arg BASE does not pin: {stages}"
    print(f"images of others: {', '.join(sorted(listed))}")


def check_panels(deploy, alerts):
    """Numbers are unique, nothing overlaps, units are Grafana's, alerts that are named are there."""
    dashboard = json.loads((deploy / "monitoring" / "dashboard.json").read_text())
    cells = set()
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert panels[0]["title"] == "Plan quality", "the quality of plans comes first"
    for panel in panels:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24 and (x, y) not in cells, f"{panel['title']} lies over another"
                cells.add((x, y))
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"] in {"percentunit", "ops", "s", "bytes", "short", "none"}, panel["title"]
        for name in re.findall(r"\bStowage[A-Z]\w+", panel.get("description", "")):
            assert name in alerts, f"{panel['title']}: there is no alert {name}"
    print(f"{len(panels)} panels")


def check_health_services(deploy, probe, port, authority):
    names = set()
    for path, text in texts(deploy):
        names |= set(re.findall(r"(?:service: |--service=)(stowage\.[\w./]+)", text))
    assert names == {"stowage.v1.PlanService", "stowage.v1.PlanService/ready"}, names

    def ask(name):
        return subprocess.run([probe, f"--server=127.0.0.1:{port}", "--tls", f"--ca_file={authority}", f"--service={name}"],
                              capture_output=True, timeout=20).returncode
    for name in names:
        assert ask(name) == 0, f"{name} is not served"
    assert ask("stowage.v1.Nobody") == 1, "a service that nobody has is served"
    print("health services:", ", ".join(sorted(names)))


def main():
    use_environment()
    yaml, = need_packages("yaml")
    need_programs("openssl")
    binaries, deploy = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    stowaged, probe = binaries / "stowaged", binaries / "stowage_probe"
    commands = set().union(*(flags_of(binaries / "stowage", *command) for command in COMMANDS))
    check_flags(deploy, flags_of(stowaged), flags_of(probe), commands)
    check_version(deploy, [stowaged, binaries / "stowage"])
    check_images(deploy)
    rules = yaml.safe_load((deploy / "monitoring" / "alerts.rules.yml").read_text())
    check_panels(deploy, {rule["alert"] for group in rules["groups"] for rule in group["rules"]})
    with tempfile.TemporaryDirectory() as folder:
        # Of a server without one there is no metric of the certificate.
        authority, key = plan_load.certificate(pathlib.Path(folder))
        server, port, metrics_port = start(str(stowaged), "--metrics_listen=127.0.0.1:0", f"--tls_cert={authority}", f"--tls_key={key}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=20) as answer:
                scrape = answer.read().decode()
            check_metrics(deploy, families_of(scrape), yaml)
            check_page(deploy, scrape)
            check_health_services(deploy, str(probe), port, authority)
        finally:
            server.kill()
            server.wait()
    print("passed")


if __name__ == "__main__":
    main()
