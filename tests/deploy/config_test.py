#!/usr/bin/env python3
"""Each configuration that deploy/ gives stowaged is one that it takes, and each that it gives Redis; the compose file and the container file
name what is there.

    config_test.py BIN_DIRECTORY DEPLOY_DIRECTORY

Exits with 77, "skipped", where a program or package is missing.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, need_programs, start, use_environment  # noqa: E402

from settings import check_fit, conf_values_of_text, quantity, seconds, with_variables  # noqa: E402

SERVICE_KEYS = {"read_only", "cap_drop", "security_opt", "restart", "image", "build", "environment", "ports", "volumes", "networks",
                "depends_on", "healthcheck", "stop_grace_period", "mem_limit", "user", "command", "working_dir", "tmpfs"}


class Machine:
    """A folder with what the configurations expect of a machine: certificates, tokens, passwords, a folder for plans."""

    def __init__(self, root):
        self.root = root
        for folder in ("etc/stowage/tls", "etc/stowage/tokens", "etc/stowage/redis", "etc/stowage/decisions", "var/lib/stowage"):
            (root / folder).mkdir(parents=True)
        tls = root / "etc/stowage/tls"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stowaged", "-days", "2",
                        "-addext", "subjectAltName=DNS:stowaged", "-keyout", tls / "tls.key", "-out", tls / "tls.crt"],
                       check=True, capture_output=True, timeout=60)
        shutil.copyfile(tls / "tls.crt", tls / "ca.crt")
        (root / "etc/stowage/tokens/tokens").write_text("a-token-of-the-test-0001 ml planner\n")
        for redis in ("redis", "decisions"):
            (root / f"etc/stowage/{redis}/password").write_text("secret\n")

    def here(self, text):
        return re.sub(r"(?<![\w.])/(etc|var/lib)/stowage", rf"{self.root}/\1/stowage", text)

    def check(self, stowaged, title, conf, variables):
        """What `stowaged --check_config` says of it, as values."""
        file = self.root / "stowaged.conf"
        file.write_text(self.here(conf))
        environment = {**os.environ, **{name: self.here(value) for name, value in variables.items()}}
        done = subprocess.run([stowaged, "--check_config", f"--config={file}"], env=environment, capture_output=True, text=True,
                              timeout=20)
        assert done.returncode == 0, f"{title}: {done.stderr}"
        values = conf_values_of_text(done.stdout)
        wanted = with_variables(conf_values_of_text(self.here(conf)), {n: self.here(v) for n, v in variables.items()})
        assert wanted and wanted.items() <= values.items(), f"{title}: {wanted.items() - values.items()}"
        print(f"{title}: {len(wanted)} values, taken")
        return values


def check_kubernetes(machine, stowaged, deploy):
    import kustomize
    import manifests
    for overlay in sorted((deploy / "kubernetes" / "overlays").iterdir()):
        resources = kustomize.render(overlay)
        _, container = manifests.stowaged_container(resources)
        assert container["args"] == ["--config=/etc/stowage/stowaged.conf"], container["args"]
        conf = next(one["data"]["stowaged.conf"] for one in manifests.of_kind(resources, "ConfigMap") if "stowaged.conf" in one["data"])
        limit = str(int(quantity(container["resources"]["limits"]["cpu"])))
        variables = {one["name"]: one.get("value", limit) for one in container["env"]}
        values = machine.check(stowaged, f"kubernetes, {overlay.name}", conf, variables)
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert values["listen"].endswith(":" + ports["grpc"]) and values["metrics_listen"].endswith(":" + ports["metrics"]), ports
        for text in manifests.of_kind(resources, "ConfigMap"):
            if "redis.conf" in text["data"]:
                keeps = text["metadata"]["name"].startswith("stowage-decisions")
                (check_durable_redis if keeps else check_redis)(machine.root, text["data"]["redis.conf"], [])


def check_secured_probes(machine, binaries, deploy):
    """What the kubelet runs in a pod of production finds a server behind TLS, and finds it gone."""
    import kustomize
    import manifests
    _, container = manifests.stowaged_container(kustomize.render(deploy / "kubernetes" / "overlays" / "production"))
    variables = {one["name"][len("STOWAGED_"):].lower(): one.get("value", "") for one in container["env"]}
    flags = [f"--{name}={machine.here(variables[name])}" for name in ("tls_cert", "tls_key", "token_file")]
    server, port, _ = start(str(binaries / "stowaged"), *flags)

    def ask(probe):
        program, *arguments = container[probe]["exec"]["command"]
        arguments = [machine.here(word).replace("127.0.0.1:7070", f"127.0.0.1:{port}") for word in arguments]
        return subprocess.run([binaries / program, *arguments], capture_output=True, timeout=20).returncode
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    try:
        assert [ask(probe) for probe in probes] == [0, 0, 0]
        server.terminate()
        assert server.wait(20) == 0
        assert [ask(probe) for probe in probes] == [1, 1, 1]
    finally:
        server.kill()
        server.wait()
    print("production: probes reach a server behind TLS")


def check_redis(folder, conf, arguments):
    """A Redis that is given them runs, and evicts."""
    settings = redis_settings(folder, conf, arguments)
    assert settings["maxmemory-policy"] == ["allkeys-lru"] and int(settings["maxmemory"][0]) > 0, settings
    assert settings["appendonly"] == ["no"] and settings["save"] == [], settings
    print("redis: runs, evicts, writes nothing")


def check_durable_redis(folder, conf, arguments):
    """As stowaged wants the one of decisions to be."""
    settings = redis_settings(folder, conf, arguments)
    assert settings["appendonly"] == ["yes"] and settings["appendfsync"] == ["always"], settings
    assert settings["no-appendfsync-on-rewrite"] == ["no"] and settings["maxmemory-policy"] == ["noeviction"], settings
    print("redis of decisions: runs, forgets nothing")


def redis_settings(folder, conf, arguments):
    """What a Redis that is given them says that it does."""
    file, socket = folder / "redis.conf", folder / "redis.sock"
    file.write_text(conf)
    server = subprocess.Popen([shutil.which("redis-server"), file, *arguments, "--port", "0", "--unixsocket", socket, "--dir", folder],
                              stdout=subprocess.DEVNULL)

    def ask(*words):
        return subprocess.run(["redis-cli", "-s", socket, *words], capture_output=True, text=True, timeout=10).stdout.split()
    try:
        for _ in range(100):
            if ask("ping") == ["PONG"]:
                break
            time.sleep(0.05)
        names = ("maxmemory-policy", "maxmemory", "appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save")
        return {name: ask("config", "get", name)[1:] for name in names}
    finally:
        server.kill()
        server.wait()


def check_compose(machine, stowaged, deploy, yaml):
    folder = deploy / "compose"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    services = compose["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, f"{name}: {set(service) - SERVICE_KEYS}"
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["mem_limit"], name
        assert set(service["networks"]) <= set(compose["networks"]) and set(service.get("depends_on", [])) <= set(services), name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name}: {port} is open to all"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (folder / source).exists() if source.startswith(".") else source in compose["volumes"], f"{name}: {volume}"
    server = services["stowaged"]
    build = (folder / server["build"]["context"]).resolve()
    assert (build / server["build"]["dockerfile"]).exists() and build == deploy.parent, build
    conf = (deploy / "container" / "stowaged.conf").read_text()
    values = machine.check(stowaged, "compose", conf, server["environment"])
    check_fit(values, quantity(server["mem_limit"]), seconds(server["stop_grace_period"]), pause=0)
    assert values["redis"].split(":")[0] in services, values["redis"]
    assert server["ports"] == [f"127.0.0.1:7070:{values['listen'].split(':')[1]}"], server["ports"]
    check_redis(machine.root, "", services["redis"]["command"][1:])
    prometheus = yaml.safe_load((folder / "prometheus.yml").read_text())
    job = next(one for one in prometheus["scrape_configs"] if one["job_name"] == "stowaged")["dns_sd_configs"][0]
    assert job["names"] == ["stowaged"] and values["metrics_listen"].endswith(f":{job['port']}"), job
    source = yaml.safe_load((folder / "grafana" / "datasources.yml").read_text())["datasources"][0]
    assert source["type"] == "prometheus" and source["url"] == "http://prometheus:9090" and "prometheus" in services, source
    print(f"compose: {len(services)} services")


def check_container_file(machine, stowaged, deploy):
    text = (deploy / "container" / "Containerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                source = re.sub("^/src/", "", source)  # what the first stage has of the tree
                assert source.startswith(("--from=", "/build/bin/")) or (deploy.parent / source).exists(), f"Containerfile: no {source}"
    assert re.search(r"^USER 10001:10001$", text, re.M) and text.count("\nFROM ") == 2, "two stages, and not as root"
    conf = (deploy / "container" / "stowaged.conf").read_text()
    refused = subprocess.run([stowaged, "--check_config", *shlex.split(machine_flags(machine, conf))], capture_output=True, text=True,
                             timeout=20)
    assert refused.returncode == 2 and "--insecure_network" in refused.stderr, "open to the network without being told to"
    values = machine.check(stowaged, "container", conf, {"STOWAGED_INSECURE_NETWORK": "true"})
    ports = re.search(r"^EXPOSE (\d+) (\d+)$", text, re.M).groups()
    assert (values["listen"].split(":")[1], values["metrics_listen"].split(":")[1]) == ports, ports


def machine_flags(machine, conf):
    file = machine.root / "image.conf"
    file.write_text(machine.here(conf))
    return f"--config={file}"


def main():
    use_environment()
    need_programs("openssl", "redis-server", "redis-cli")
    yaml, = need_packages("yaml")
    binaries, deploy = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    stowaged = binaries / "stowaged"
    with tempfile.TemporaryDirectory() as name:
        machine = Machine(pathlib.Path(name))
        check_kubernetes(machine, stowaged, deploy)
        check_secured_probes(machine, binaries, deploy)
        check_compose(machine, stowaged, deploy, yaml)
        check_container_file(machine, stowaged, deploy)
        machine.check(stowaged, "systemd", (deploy / "systemd" / "stowaged.conf").read_text(), {})
    print("passed")


if __name__ == "__main__":
    main()
