#!/usr/bin/env python3
"""Each configuration that deploy/ gives stowaged is one that it takes, and each that it gives Redis; the compose file and the container file
name what is there.

    config_test.py BIN_DIRECTORY DEPLOY_DIRECTORY

Exits with 77, "skipped", where a program or package is missing.
"""
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, need_programs, start, use_environment  # noqa: E402

from settings import check_fit, conf_values_of_text, quantity, seconds, with_variables  # noqa: E402

SERVICE_KEYS = {"read_only", "cap_drop", "security_opt", "restart", "image", "build", "environment", "ports", "volumes", "networks",
                "depends_on", "healthcheck", "stop_grace_period", "mem_limit", "user", "command", "working_dir", "tmpfs"}


TOKEN = "a-token-of-the-test-0001"
PASSWORD = "secret"


def certificate(folder, name):
    """A folder with what a Secret for TLS has, a certificate for the name that signed itself."""
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2",
                    "-addext", f"subjectAltName=DNS:{name}", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                   check=True, capture_output=True, timeout=60)
    shutil.copyfile(folder / "tls.crt", folder / "ca.crt")


class Machine:
    """A folder with what the configurations expect of a machine: certificates, tokens, passwords, a folder for plans."""

    def __init__(self, root):
        self.root = root
        for folder in ("etc/stowage/tokens", "etc/stowage/entry-key", "etc/stowage/redis", "etc/stowage/decisions", "var/lib/stowage"):
            (root / folder).mkdir(parents=True)
        certificate(root / "etc/stowage/tls", "stowaged")
        (root / "etc/stowage/tokens/tokens").write_text(f"{TOKEN} ml planner\n")
        (root / "etc/stowage/entry-key/keys").write_text(f"{'5e' * 32}\n")
        for redis in ("redis", "decisions"):
            (root / f"etc/stowage/{redis}/password").write_text(f"{PASSWORD}\n")
            certificate(root / f"{redis}-tls", f"stowage-{redis}")
            (root / f"etc/stowage/{redis}-ca").mkdir()
            shutil.copyfile(root / f"{redis}-tls/ca.crt", root / f"etc/stowage/{redis}-ca/ca.crt")

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


class PodOfRedis:
    """A Redis of production, run on this machine as its pod runs it: by command, arguments and the probe."""

    def __init__(self, machine, resources, name):
        import manifests
        _, container = next(one for one in manifests.containers(resources) if one[0]["metadata"]["name"] == f"stowage-{name}")
        conf = next(one["data"]["redis.conf"] for one in manifests.of_kind(resources, "ConfigMap")
                    if one["metadata"]["name"].startswith(f"stowage-{name}"))
        self.folder, self.port, self.tls = machine.root / f"{name}-here", str(free_port()), machine.root / f"{name}-tls"
        self.folder.mkdir()
        (self.folder / "redis.conf").write_text(conf.replace("/var/lib/redis", str(self.folder)))
        self.probe = [self.here(word) for word in container["readinessProbe"]["exec"]["command"]]
        self.environment = {**os.environ, "REDISCLI_AUTH": PASSWORD}
        words = [self.here(word).replace("$(REDISCLI_AUTH)", PASSWORD) for word in container["command"] + container["args"]]
        self.server = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL)

    def here(self, word):
        word = self.port if word == "6379" else word
        return word.replace("/etc/redis-tls", str(self.tls)).replace("/etc/redis", str(self.folder))

    def ask(self, *words):
        """What the probe's program says of other words than its own."""
        done = subprocess.run([*self.probe[:-1], "-p", self.port, *words], env=self.environment, capture_output=True, text=True, timeout=10)
        return done.stdout.split()

    def wait(self):
        until(lambda: self.ask(self.probe[-1]) == ["PONG"], f"the probe {self.probe} does not find Redis")

    def close(self):
        self.server.kill()
        self.server.wait()


def asked_by_others(pod):
    """What a client other than this test asked last. One that has not got past TLS has asked nothing."""
    return {word for word in pod.ask("client", "list") if word.startswith("cmd=")} - {"cmd=client|list", "cmd=NULL"}


def until(holds, otherwise):
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(otherwise)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def check_shared_by_tls(machine, binaries, deploy):
    """stowaged of production and both of its Redis, each with its pod's own words: by TLS alone, and what is shared is sealed."""
    import kustomize
    import manifests
    resources = kustomize.render(deploy / "kubernetes" / "overlays" / "production")
    values = {name: machine.here(value) for name, value in manifests.settings(resources).items()}
    with contextlib.ExitStack() as all_of_it:
        pods = {}
        for name in ("redis", "decisions"):
            pods[name] = PodOfRedis(machine, resources, name)
            all_of_it.callback(pods[name].close)
        flags = [f"--{name}={values[name]}" for name in ("tls_cert", "tls_key", "token_file", "entry_key_file")]
        for name, flag in (("redis", "redis"), ("decisions", "decisions_redis")):
            pods[name].wait()
            plain = subprocess.run(["redis-cli", "-p", pods[name].port, "ping"], capture_output=True, text=True, timeout=10)
            assert "PONG" not in plain.stdout, f"{name}: answers without TLS"
            # The host is this machine; the certificate is for the one that the address has.
            scheme, host = re.fullmatch(r"(rediss://)([\w-]+):6379", values[flag]).groups()
            flags += [f"--{flag}={scheme}127.0.0.1:{pods[name].port}", f"--{flag}_server_name={host}", f"--{flag}_timeout=5s",
                      f"--{flag}_ca={values[flag + '_ca']}", f"--{flag}_password_file={values[flag + '_password_file']}"]
        server, port, _ = start(str(binaries / "stowaged"), *flags)
        all_of_it.callback(server.wait)
        all_of_it.callback(server.kill)
        token = machine.root / "token"
        token.write_text(TOKEN)
        catalogue = deploy.parent / "solvers/zoo/data"
        profile = machine.root / "profile.json"
        profile.write_bytes(subprocess.check_output([binaries / "stowage", "catalogue", "export", "resnet18", f"--catalogue={catalogue}"],
                                                    timeout=20))
        subprocess.run([binaries / "stowage", "plan", f"--server=127.0.0.1:{port}", "--no_local", f"--profile={profile}", "--budget=95%",
                        "--slots=400", "--tls", f"--ca_file={values['tls_cert']}", "--server_name=stowaged", f"--token_file={token}"],
                       check=True, capture_output=True, timeout=60)
        until(lambda: any(":v2m:" in name for name in pods["redis"].ask("--scan")), "there is no sealed entry in Redis")
        until(lambda: asked_by_others(pods["decisions"]), "stowaged asks nothing of the Redis of decisions")
    print("production: stowaged and both Redis by TLS, entries sealed")


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
        check_shared_by_tls(machine, binaries, deploy)
        check_compose(machine, stowaged, deploy, yaml)
        check_container_file(machine, stowaged, deploy)
        machine.check(stowaged, "systemd", (deploy / "systemd" / "stowaged.conf").read_text(), {})
    print("passed")


if __name__ == "__main__":
    main()
