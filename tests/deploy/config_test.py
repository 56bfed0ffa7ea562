#!/usr/bin/env python3
"""Each configuration that deploy/ gives stowaged is one that it takes, and each that it gives Redis; the compose file and the container file
name what is there.

    config_test.py BIN_DIRECTORY DEPLOY_DIRECTORY

Exits with 77, "skipped", where a program or package is missing.
"""
import contextlib
import json
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
ADMIN_TOKEN = "a-token-of-the-test-0002"
PASSWORD = "secret"


def certificate(name):
    """What a Secret for TLS has, by its keys: a certificate for the name that signed itself."""
    with tempfile.TemporaryDirectory() as folder:
        key, signed = pathlib.Path(folder) / "key", pathlib.Path(folder) / "certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2",
                        "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", signed],
                       check=True, capture_output=True, timeout=60)
        return {"tls.key": key.read_text(), "tls.crt": signed.read_text(), "ca.crt": signed.read_text()}


def made_secret(name, keys):
    """What before_use.md has one make under these keys."""
    made = {"password": f"{PASSWORD}\n", "tokens": f"{TOKEN} ml planner\n{ADMIN_TOKEN} - admin\n", "keys": f"{'5e' * 32}\n"}
    if "tls.key" in keys:
        made = certificate(name.removesuffix("-tls"))
    return {key: made[key] for key in keys}


class Machine:
    """A folder with what the configurations expect of a machine, the Secrets of before_use.md where stowaged's pod of production has them,
    and a folder for plans."""

    def __init__(self, root, deploy):
        import kustomize
        import manifests
        self.root = root
        self.production = kustomize.render(deploy / "kubernetes" / "overlays" / "production")
        self.secrets = {name: made_secret(name, keys) for name, keys in manifests.documented_secrets(deploy).items()}
        (root / "var/lib/stowage").mkdir(parents=True)
        self.mount(*manifests.stowaged_container(self.production), root)

    def mount(self, pod, container, folder):
        """Writes below the folder what the container has of Secrets, at the places where it has it."""
        secrets = {volume["name"]: volume["secret"] for volume in pod["volumes"] if "secret" in volume}
        for mount in container["volumeMounts"]:
            if mount["name"] in secrets:
                secret = secrets[mount["name"]]
                made = self.secrets[secret["secretName"]]
                place = folder / mount["mountPath"].lstrip("/")
                place.mkdir(parents=True, exist_ok=True)
                for path, key in {item["path"]: item["key"] for item in secret.get("items", [])}.items() or zip(made, made):
                    (place / path).write_text(made[key])

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
        # A probe that takes too long on a busy machine is made again, as the kubelet does.
        until(lambda: not any(ask(probe) for probe in probes), "probes do not find a server that is there")
        server.terminate()
        assert server.wait(60) == 0, "the server does not end well"
        assert [ask(probe) for probe in probes] == [1, 1, 1], "probes find a server that is gone"
    finally:
        server.kill()
        server.wait()
    print("production: probes reach a server behind TLS")


class PodOfRedis:
    """A Redis of production as its pod has it: command, arguments, configuration, files of Secrets and probes."""

    def __init__(self, machine, name):
        import manifests
        workload, self.container = next(one for one in manifests.containers(machine.production)
                                        if one[0]["metadata"]["name"] == f"stowage-{name}")
        self.pod = workload["spec"]["template"]["spec"]
        conf = next(one["data"]["redis.conf"] for one in manifests.of_kind(machine.production, "ConfigMap")
                    if one["metadata"]["name"].startswith(f"stowage-{name}"))
        self.machine, self.folder, self.port = machine, machine.root / f"pod-of-{name}", str(free_port())
        (self.folder / "etc/redis").mkdir(parents=True)
        (self.folder / "etc/redis/redis.conf").write_text(conf.replace("/var/lib/redis", str(self.folder)))
        self.environment = {**os.environ, "REDISCLI_AUTH": PASSWORD}
        self.client = self.here(self.container["readinessProbe"]["exec"]["command"][:-1])
        self.mount()
        self.start()

    def mount(self):
        self.machine.mount(self.pod, self.container, self.folder)

    def start(self):
        words = [word.replace("$(REDISCLI_AUTH)", PASSWORD) for word in self.here(self.container["command"] + self.container["args"])]
        self.server = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL)

    def here(self, words):
        return [f"{self.folder}{word}" if word.startswith("/etc/") else self.port if word == "6379" else word for word in words]

    def ask(self, *words):
        """What the probes' program says of other words than theirs."""
        done = subprocess.run([*self.client, "-p", self.port, *words], env=self.environment, capture_output=True, text=True, timeout=10)
        return done.stdout.split()

    def passes(self, probe):
        """Whether the probe finds Redis. It asks the port that redis-cli knows by itself; here Redis has another."""
        program, *words = self.here(self.container[probe]["exec"]["command"])
        return subprocess.run([program, "-p", self.port, *words], env=self.environment, capture_output=True, timeout=10).returncode == 0

    def wait(self):
        until(lambda: self.passes("readinessProbe") and self.passes("livenessProbe"), f"{self.client[0]} does not find Redis")

    def close(self):
        self.server.kill()
        self.server.wait()


def asked_by_others(pod):
    """What a client other than this test asked last. One that has not got past TLS has asked nothing."""
    return {word for word in pod.ask("client", "list") if word.startswith("cmd=")} - {"cmd=client|list", "cmd=NULL"}


def until(holds, otherwise):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class ServerOfProduction:
    """stowaged by the configuration, the variables and the Secrets of its pod of production. Its own, beside further flags: the ports that it
    listens at, and where the Redis are; their certificates stay those for the names that production has."""

    def __init__(self, machine, binaries, pods, *flags):
        import manifests
        _, container = manifests.stowaged_container(machine.production)
        self.values = {name: machine.here(value) for name, value in manifests.settings(machine.production).items()}
        conf = next(one["data"]["stowaged.conf"] for one in manifests.of_kind(machine.production, "ConfigMap")
                    if "stowaged.conf" in one["data"])
        (machine.root / "etc/stowage/stowaged.conf").write_text(machine.here(conf))
        own = [f"--store={self.values['store']}"]
        for flag, pod in pods.items():
            scheme, host = re.fullmatch(r"(rediss://)([\w-]+):6379", self.values[flag]).groups()
            own += [f"--{flag}={scheme}127.0.0.1:{pod.port}", f"--{flag}_server_name={host}"]
        limit = str(int(quantity(container["resources"]["limits"]["cpu"])))
        self.binaries, self.root, self.log = binaries, machine.root, machine.root / "log_of_production"
        with self.log.open("w") as log:
            self.server, self.port, _ = start(
                str(binaries / "stowaged"), *map(machine.here, container["args"]), *own, *flags, log=log,
                environment={one["name"]: machine.here(one.get("value", limit)) for one in container["env"]})

    def stowage(self, token, *words):
        """The command `stowage`, which asks it."""
        file = self.root / "token"
        file.write_text(token)
        return subprocess.run([self.binaries / "stowage", *words, f"--server=127.0.0.1:{self.port}", "--tls", "--server_name=stowaged",
                               f"--ca_file={self.values['tls_cert']}", f"--token_file={file}"], capture_output=True, text=True, timeout=60)

    def plan(self, deploy):
        profile = self.root / "profile.json"
        if not profile.exists():
            profile.write_bytes(subprocess.check_output([self.binaries / "stowage", "catalogue", "export", "resnet18",
                                                         f"--catalogue={deploy.parent / 'solvers/zoo/data'}"], timeout=20))
        done = self.stowage(TOKEN, "plan", "--no_local", f"--profile={profile}", "--budget=95%", "--slots=400")
        assert done.returncode == 0, done.stderr

    def events(self, name):
        return [one for one in map(json.loads, self.log.read_text().rpartition("\n")[0].splitlines()) if one["event"] == name]

    def close(self):
        self.server.kill()
        self.server.wait()


def check_shared_by_tls(machine, binaries, deploy):
    """stowaged and both Redis of production: by TLS alone, with each its own authority, and what is shared is sealed."""
    with contextlib.ExitStack() as all_of_it:
        pods = {}
        for name, flag in (("redis", "redis"), ("decisions", "decisions_redis")):
            pods[flag] = PodOfRedis(machine, name)
            all_of_it.callback(pods[flag].close)
            pods[flag].wait()
            plain = subprocess.run(["redis-cli", "-p", pods[flag].port, "ping"], capture_output=True, text=True, timeout=10)
            assert "PONG" not in plain.stdout, f"{name}: answers without TLS"
        check_swapped_authorities(machine, binaries, deploy, pods)
        server = ServerOfProduction(machine, binaries, pods)
        all_of_it.callback(server.close)
        server.plan(deploy)
        until(lambda: any(":v2m:" in name for name in pods["redis"].ask("--scan")), "there is no sealed entry in Redis")
        key = json.loads(server.stowage(ADMIN_TOKEN, "cache", "ls", "--format=json").stdout)[0]["key"]
        # Refused while the Redis of decisions rests after a handshake that took too long on a busy machine.
        until(lambda: server.stowage(ADMIN_TOKEN, "cache", "pin", key, "--action=freeze").returncode == 0, "no decision is taken")
        decided = {name for name in pods["decisions_redis"].ask("--scan") if ":key:" in name}
        assert len(decided) == 1 and all(name.startswith("stowage:decided:v1m:key:") for name in decided), decided
        check_changed_certificate(machine, pods["redis"], "stowage-redis")
    print("production: stowaged and both Redis by TLS, plans and decisions sealed")


def check_swapped_authorities(machine, binaries, deploy, pods):
    """stowaged asks nothing of a Redis whose certificate is of the other one's authority."""
    etc = machine.root / "etc/stowage"
    server = ServerOfProduction(machine, binaries, pods, "--store=memory", f"--redis_ca={etc}/decisions-ca/ca.crt",
                                f"--decisions_redis_ca={etc}/redis-ca/ca.crt")
    try:
        server.plan(deploy)
        until(lambda: {one.get("of") for one in server.events("redis_away") if "certificate" in one["reason"]} == {None, "decisions"},
              "a Redis is not away for its certificate")
        assert not any(asked_by_others(pod) for pod in pods.values()), "a client of the other's authority gets through"
    finally:
        server.close()


def check_changed_certificate(machine, pod, name):
    """A certificate of another authority in the Secret: both probes fail until Redis is started again, which liveness brings about."""
    secret = machine.secrets[f"{name}-tls"]
    secret.update(certificate(name))
    pod.mount()
    assert not pod.passes("readinessProbe") and not pod.passes("livenessProbe"), f"{name}: its old certificate holds"
    pod.close()
    pod.start()
    pod.wait()


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
        machine = Machine(pathlib.Path(name), deploy)
        check_kubernetes(machine, stowaged, deploy)
        check_secured_probes(machine, binaries, deploy)
        check_shared_by_tls(machine, binaries, deploy)
        check_compose(machine, stowaged, deploy, yaml)
        check_container_file(machine, stowaged, deploy)
        machine.check(stowaged, "systemd", (deploy / "systemd" / "stowaged.conf").read_text(), {})
    print("passed")


if __name__ == "__main__":
    main()
