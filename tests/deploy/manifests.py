"""What must hold between the resources of a rendered overlay: what one names, another is."""
import re

import yaml

from settings import check_fit, conf_values_of_text, quantity, with_variables

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def of_kind(resources, *kinds):
    return [resource for resource in resources if resource["kind"] in kinds]


def workloads(resources):
    return of_kind(resources, "StatefulSet", "Deployment")


def containers(resources):
    for workload in workloads(resources):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            yield workload, container


def title(resource):
    return f"{resource['kind']} {resource['metadata']['name']}"


def selected(selector, workload):
    return selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()


def check_selectors(resources):
    """Each selector means one workload, and each workload has a policy, a budget of disruptions unless it is alone, a Service."""
    for resource in resources:
        spec = resource.get("spec", {})
        selector = {"Service": lambda: spec["selector"], "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"],
                    "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"],
                    "PodMonitor": lambda: spec["selector"]["matchLabels"],
                    "StatefulSet": lambda: spec["selector"]["matchLabels"],
                    "Deployment": lambda: spec["selector"]["matchLabels"]}.get(resource["kind"])
        if selector:
            found = [workload for workload in workloads(resources) if selected(selector(), workload)]
            assert len(found) == 1, f"{title(resource)} means {[title(one) for one in found]}"
    for workload in workloads(resources):
        for kind in ("Service", "NetworkPolicy"):
            assert any(selected(one["spec"].get("selector", one["spec"].get("podSelector", {}).get("matchLabels")), workload)
                       for one in of_kind(resources, kind)), f"{title(workload)} has no {kind}"
        pod = workload["spec"]["template"]["spec"]
        for spread in pod.get("topologySpreadConstraints", []):
            assert selected(spread["labelSelector"]["matchLabels"], workload), title(workload)
    for scaler in of_kind(resources, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        scaled = [one for one in workloads(resources) if (one["kind"], one["metadata"]["name"]) == (target["kind"], target["name"])]
        assert len(scaled) == 1, f"{title(scaler)} scales {target}"
        assert "replicas" not in scaled[0]["spec"], f"{title(scaled[0])} has replicas of its own beside the autoscaler's"


def port_names(workload):
    return {port["name"]: port["containerPort"] for container in workload["spec"]["template"]["spec"]["containers"]
            for port in container["ports"]}


def check_ports(resources):
    for workload in workloads(resources):
        names = port_names(workload)
        for service in of_kind(resources, "Service"):
            if selected(service["spec"]["selector"], workload):
                for port in service["spec"]["ports"]:
                    assert names[port["targetPort"]] == port["port"], f"{title(service)}: {port}"
        for policy in of_kind(resources, "NetworkPolicy"):
            if selected(policy["spec"]["podSelector"]["matchLabels"], workload):
                for rule in policy["spec"].get("ingress", []):
                    assert {port["port"] for port in rule["ports"]} <= set(names), title(policy)
        for monitor in of_kind(resources, "PodMonitor"):
            if selected(monitor["spec"]["selector"]["matchLabels"], workload):
                for endpoint in monitor["spec"]["podMetricsEndpoints"]:
                    assert endpoint["port"] in names, title(monitor)
        for container in workload["spec"]["template"]["spec"]["containers"]:
            for probe in PROBES:
                grpc = container.get(probe, {}).get("grpc")
                assert grpc is None or grpc["port"] == names["grpc"], f"{title(workload)}: {probe}"


def check_references(resources):
    """Volumes, maps and accounts that are used are there; maps that are there are used."""
    maps = {one["metadata"]["name"] for one in of_kind(resources, "ConfigMap")}
    accounts = {one["metadata"]["name"] for one in of_kind(resources, "ServiceAccount")} | {"default"}
    services = {one["metadata"]["name"] for one in of_kind(resources, "Service")}
    used = set()
    for workload in workloads(resources):
        spec = workload["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in spec["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
        assert volumes == mounted, f"{title(workload)}: {volumes ^ mounted}"
        used |= {volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume}
        assert spec.get("serviceAccountName", "default") in accounts, title(workload)
        assert workload["spec"].get("serviceName", next(iter(services))) in services, title(workload)
    assert used == maps, f"maps used and there: {used ^ maps}"


def check_hardening(resources):
    for resource in resources:
        assert resource["kind"] == "Namespace" or resource["metadata"].get("namespace") == "stowage", title(resource)
    for workload, container in containers(resources):
        where = f"{title(workload)}: {container['name']}"
        pod = workload["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False, where
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0, where
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                "capabilities": {"drop": ["ALL"]}}, where
        assert {"livenessProbe", "readinessProbe"} <= set(container), where
        assert ":" in container["image"] and not container["image"].endswith(":latest"), f"{where}: {container['image']}"
        for amount in ("cpu", "memory"):
            request, limit = (quantity(container["resources"][side][amount]) for side in ("requests", "limits"))
            assert 0 < request <= limit, f"{where}: {amount}"
    for policy in of_kind(resources, "NetworkPolicy"):
        assert "Egress" in policy["spec"]["policyTypes"], title(policy)


def check_redis(resources):
    """Redis needs memory beside what it keeps: for buffers, and what it has not given back. One is a cache, the other forgets nothing."""
    for config in of_kind(resources, "ConfigMap"):
        if "redis.conf" in config["data"]:
            lines = dict(line.split(None, 1) for line in config["data"]["redis.conf"].splitlines() if line and line[0] != "#")
            workload, container = redis_of(config, resources)
            kept = float(lines["maxmemory"][:-2]) * {"mb": 2**20, "gb": 2**30}[lines["maxmemory"][-2:]]
            limit = quantity(container["resources"]["limits"]["memory"])
            assert kept <= 0.8 * limit, f"maxmemory {kept} of {limit}"
            assert lines["save"] == '""'
            if "decisions" in config["metadata"]["name"]:
                check_durable(lines, workload, container)
            else:
                assert lines["maxmemory-policy"] == "allkeys-lru" and lines["appendonly"] == "no"


def check_redis_tls(resources):
    """A Redis, its probe and stowaged agree on whether there is TLS; what each names as a file is in a volume of its own pod."""
    values = settings(resources)
    pod, stowaged = stowaged_container(resources)
    for workload, container in containers(resources):
        if container["name"] == "redis":
            flag = "decisions_redis" if "decisions" in workload["metadata"]["name"] else "redis"
            by_tls = values[flag].startswith("rediss://")
            words = container["command"] + container["args"]
            options = dict(zip(words[2::2], words[3::2]))
            port = str(port_names(workload)["redis"])
            assert values[flag].removeprefix("rediss://") == f"{workload['metadata']['name']}:{port}", f"{flag}: {values[flag]}"
            wanted = {"--port": "0", "--tls-port": port} if by_tls else {}
            assert {name: options[name] for name in ("--port", "--tls-port") if name in options} == wanted, f"{title(workload)}: {options}"
            probe = container["readinessProbe"]["exec"]["command"]
            assert ("--tls" in probe) == by_tls == (f"{flag}_ca" in values), title(workload)
            alive = container["livenessProbe"]
            if by_tls:
                ended = f"{title(workload)}: nothing restarts it when its certificate ends"
                assert alive.get("exec") == {"command": probe} and "tcpSocket" not in alive, ended
                seconds_to_live = alive["failureThreshold"] * alive["periodSeconds"]
                assert 60 <= seconds_to_live <= 300, f"{title(workload)}: {seconds_to_live} s until a restart"
                theirs = secret_of(options["--tls-cert-file"], workload["spec"]["template"]["spec"], container)
                ours = secret_of(values[f"{flag}_ca"], pod, stowaged)
                assert ours["secretName"] == theirs["secretName"], f"{title(workload)}: {theirs}, and stowaged has {ours}"
                assert [item["key"] for item in ours["items"]] == ["ca.crt"], f"stowaged may read the key of {title(workload)}"


def files_of(container, values):
    """What a container names as a file: in its command, its arguments and its probes; stowaged in the values of its settings, too."""
    words = container.get("command", []) + container.get("args", [])
    words += [word for probe in PROBES for word in container.get(probe, {}).get("exec", {}).get("command", [])]
    words += values.values() if container["name"] == "stowaged" else []
    return {found.group(1) for found in (re.fullmatch(r"(?:--\w+=)?(/etc/.+)", word) for word in words) if found}


def is_in(file, mount):
    return file == mount or file.startswith(mount + "/")


def secret_of(file, pod, container):
    """The Secret that a container has the file by; none where another kind of volume has it."""
    name = next(mount["name"] for mount in container["volumeMounts"] if is_in(file, mount["mountPath"]))
    return next(volume for volume in pod["volumes"] if volume["name"] == name).get("secret")


def keys_of_secrets(resources):
    """The Secrets that pods need, each with the keys in it that they use: by files that they name, and by variables."""
    values = settings(resources)
    used = {}
    for workload, container in containers(resources):
        pod = workload["spec"]["template"]["spec"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        for file in files_of(container, values):
            assert any(is_in(file, mount) for mount in mounts.values()), f"{title(workload)}: no volume has {file}"
        files = {file: secret for file in files_of(container, values) if (secret := secret_of(file, pod, container))}
        for volume in pod["volumes"]:
            if "secret" in volume:
                mount, secret = mounts[volume["name"]], volume["secret"]
                named = {file[len(mount) + 1:] for file in files if files[file] is secret}
                paths = {item["path"]: item["key"] for item in secret.get("items", [])} or {path: path for path in named}
                assert named and named <= set(paths), f"{title(workload)}: of {mount} {named} are read, and there are {set(paths)}"
                used.setdefault(secret["secretName"], set()).update(paths[path] for path in named)
        for variable in container["env"]:
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference:
                used.setdefault(reference["name"], set()).add(reference["key"])
    return used


def check_secrets(resources):
    """Each file that is named is in a volume, and the container's user, who is not its owner, may read those of a Secret by the group."""
    keys_of_secrets(resources)
    for workload in workloads(resources):
        pod = workload["spec"]["template"]["spec"]
        for volume in pod["volumes"]:
            if "secret" in volume:
                where, security = f"{title(workload)}: volume {volume['name']}", pod["securityContext"]
                assert security.get("fsGroup") == security["runAsGroup"], f"{where}: of group {security.get('fsGroup')}"
                for mode in [volume["secret"].get("defaultMode", 0o644), *(item["mode"] for item in volume["secret"].get("items", [])
                                                                           if "mode" in item)]:
                    assert mode & 0o040, f"{where}: mode {mode:04o}"


def documented_secrets(deploy):
    """The Secrets that before_use.md says how to make, in its order, each with its keys."""
    text = (deploy / "kubernetes" / "before_use.md").read_text().replace("\\\n", " ")
    made, names = {}, None
    for line in text.splitlines():
        loop = re.fullmatch(r"\s+for name in (.*); do", line)
        names = loop.group(1).split() if loop else names
        created = re.search(r"create secret generic (\S+) (.*)", line)
        if created:
            keys = {found.rpartition("/")[2] for found in re.findall(r"--from-(?:literal|file)=([^\s=]+)", created.group(2))}
            made.update((name, keys) for name in (names if created.group(1) == "$name" else [created.group(1)]))
    return made


def redis_of(config, resources):
    """The workload that has the map, and its container."""
    return next((workload, container) for workload, container in containers(resources)
                for volume in workload["spec"]["template"]["spec"]["volumes"]
                if volume.get("configMap", {}).get("name") == config["metadata"]["name"])


def check_durable(lines, workload, container):
    """What stowaged asks of --decisions_redis (server/decisions/durable_redis.h), on a volume that stays."""
    wanted = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "maxmemory-policy": "noeviction"}
    assert wanted.items() <= lines.items(), lines
    claims = {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    assert any(mount["mountPath"] == lines["dir"] and mount["name"] in claims for mount in container["volumeMounts"]), title(workload)


def settings(resources):
    """The values that stowaged is given, by its file and its variables."""
    pod, container = stowaged_container(resources)
    name = next(volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    text = next(one["data"]["stowaged.conf"] for one in of_kind(resources, "ConfigMap") if one["metadata"]["name"] == name)
    return with_variables(conf_values_of_text(text), {one["name"]: one["value"] for one in container["env"] if "value" in one})


def check_memory_and_time(resources):
    pod, container = stowaged_container(resources)
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep", command
    check_fit(settings(resources), quantity(container["resources"]["limits"]["memory"]), pod["terminationGracePeriodSeconds"],
              pause=float(command[1]))


def check_all(resources):
    for check in (check_selectors, check_ports, check_references, check_hardening, check_redis, check_secrets, check_redis_tls,
                  check_memory_and_time):
        check(resources)


def stowaged_container(resources):
    """The pod's specification and the container in it."""
    return next((workload["spec"]["template"]["spec"], container) for workload, container in containers(resources)
                if container["name"] == "stowaged")


def pod_monitor_fields(resource):
    """Of a custom resource that no schema here knows: just the fields that deploy/ uses, by their names in the operator's API."""
    spec = resource["spec"]
    assert resource["apiVersion"] == "monitoring.coreos.com/v1", resource
    assert set(spec) == {"jobLabel", "selector", "podMetricsEndpoints"}, yaml.safe_dump(spec)
    # The rules of alerts find jobs by their name.
    assert "stowage" in spec["selector"]["matchLabels"].get(spec["jobLabel"], ""), yaml.safe_dump(spec)
    for endpoint in spec["podMetricsEndpoints"]:
        assert set(endpoint) <= {"port", "path", "interval", "scrapeTimeout"}, endpoint
