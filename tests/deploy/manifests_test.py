#!/usr/bin/env python3
"""The manifests for Kubernetes: YAML's style, what Kustomize makes of them, the API's schemas, and what one says of another.

    manifests_test.py DEPLOY_DIRECTORY

No cluster and no kustomize: kustomize.py renders. Where there is a kubectl, its rendering must be the same. Exits with 77, "skipped",
where a package is missing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, use_environment  # noqa: E402

# The oldest with all that is used here stable, and the newest that the schemas know.
OLDEST = "1.30"
OVERLAYS = {"plain": 7, "redis": 12, "durable": 17, "production": 19}


def lint(deploy):
    style = pathlib.Path(__file__).parent / "yamllint.yml"
    subprocess.run([sys.executable, "-m", "yamllint", "--strict", "-c", style, deploy], check=True)
    print("style of YAML: clean,", len(list(deploy.rglob("*.y*ml"))), "files")


def compare_with_kubectl(folder, resources, yaml):
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return "rendered by kustomize.py alone"
    text = subprocess.run([kubectl, "kustomize", folder], check=True, capture_output=True, text=True).stdout

    def by_name(documents):
        return {(one["kind"], one["metadata"]["name"]): one for one in documents}
    theirs, ours = by_name(yaml.safe_load_all(text)), by_name(resources)
    assert theirs.keys() == ours.keys(), f"kubectl renders {theirs.keys() ^ ours.keys()} otherwise"
    for name, resource in theirs.items():
        assert ours[name] == resource, f"kubectl renders {name} otherwise:\n{yaml.safe_dump(resource)}"
    return "rendered as kubectl renders it"


def validate(resources, kubernetes_validate):
    import manifests
    versions = (OLDEST, kubernetes_validate.latest_version())
    for resource in resources:
        if resource["kind"] == "PodMonitor":
            manifests.pod_monitor_fields(resource)
            continue
        for version in versions:
            kubernetes_validate.validate(resource, version, strict=True)
    return f"valid for Kubernetes {versions[0]} and {versions[1]}"


def check_that_mistakes_are_seen(resources, kubernetes_validate):
    """The schemas refuse an unknown field; the checks between resources a name that nobody has."""
    import copy

    import manifests
    wrong = copy.deepcopy(resources)
    pod, container = manifests.stowaged_container(wrong)
    container["readynessProbe"] = container["readinessProbe"]
    try:
        validate(wrong, kubernetes_validate)
    except kubernetes_validate.ValidationError:
        del container["readynessProbe"]
    else:
        raise AssertionError("an unknown field is not seen")
    pod["volumes"][0]["name"] = "nobody's"
    assert refuses(manifests.check_references, wrong), "a volume that is not there is not seen"


def check_that_lost_tls_is_seen(resources):
    """What production would be without one of the parts of TLS to Redis."""
    import copy

    import manifests
    for flag, name in (("redis", "stowage-redis"), ("decisions_redis", "stowage-decisions")):
        def changed(change):
            wrong = copy.deepcopy(resources)
            pod, stowaged = manifests.stowaged_container(wrong)
            redis = next(one for workload, one in manifests.containers(wrong) if workload["metadata"]["name"] == name)
            change(pod, {one["name"]: one for one in stowaged["env"]}[f"STOWAGED_{flag.upper()}"], stowaged, redis)
            return wrong
        volume = f"{name[len('stowage-'):]}-ca"
        for what, change in {
                "an address without TLS": lambda pod, address, stowaged, redis: address.update(value=f"{name}:6379"),
                "a Redis without TLS": lambda pod, address, stowaged, redis: redis.update(command=redis["command"][:2]),
                "a port without TLS": lambda pod, address, stowaged, redis: redis["command"].__setitem__(3, "6379"),
                "a probe without TLS": lambda pod, address, stowaged, redis: redis["readinessProbe"]["exec"]["command"].remove("--tls"),
                "no authority": lambda pod, address, stowaged, redis: stowaged.update(
                    volumeMounts=[one for one in stowaged["volumeMounts"] if one["name"] != volume]),
                "another's authority": lambda pod, address, stowaged, redis: next(
                    one for one in pod["volumes"] if one["name"] == volume)["secret"].update(secretName="stowaged-tls"),
                "a key that is not Redis's alone": lambda pod, address, stowaged, redis: next(
                    one for one in pod["volumes"] if one["name"] == volume)["secret"]["items"][0].update(key="tls.key"),
                "a liveness probe that asks nothing": lambda pod, address, stowaged, redis: redis.update(
                    livenessProbe={"tcpSocket": {"port": "redis"}, "periodSeconds": 10, "failureThreshold": 12}),
                "a restart at the first probe that fails": lambda pod, address, stowaged, redis: redis["livenessProbe"].update(
                    failureThreshold=1)}.items():
            assert refuses(check_tls_and_secrets, changed(change)), f"{name}: {what} is not seen"


def check_tls_and_secrets(resources):
    import manifests
    manifests.check_secrets(resources)
    manifests.check_redis_tls(resources)


def check_that_unreadable_secrets_are_seen(resources):
    """What production would be if a user could not read a file of a Secret, or the file had another name."""
    import copy

    import manifests
    seen = set()
    for number, workload in enumerate(manifests.workloads(resources)):
        for index, volume in enumerate(workload["spec"]["template"]["spec"]["volumes"]):
            if "secret" in volume:
                for what, change in {
                        "no group": lambda pod, secret: pod["securityContext"].pop("fsGroup"),
                        "another group": lambda pod, secret: pod["securityContext"].update(fsGroup=1),
                        "a mode for the owner": lambda pod, secret: secret.update(defaultMode=0o400),
                        "another name": lambda pod, secret: secret.update(items=[{"key": "ca.crt", "path": "x.crt"}])}.items():
                    wrong = copy.deepcopy(resources)
                    pod = manifests.workloads(wrong)[number]["spec"]["template"]["spec"]
                    change(pod, pod["volumes"][index]["secret"])
                    assert refuses(manifests.check_secrets, wrong), f"{manifests.title(workload)}, {volume['name']}: {what} is not seen"
                    seen.add((workload["metadata"]["name"], volume["name"]))
    assert len(seen) == 9, seen


def check_documented_secrets(deploy, overlays):
    """before_use.md makes the Secrets that the overlays use, with the keys that pods read; production.yaml of the chart names them."""
    import manifests
    documented = manifests.documented_secrets(deploy)
    for name, count in {"plain": 0, "redis": 1, "durable": 2, "production": len(documented)}.items():
        wanted = {secret: documented[secret] for secret in list(documented)[:count]}
        used = manifests.keys_of_secrets(overlays[name])
        assert used == wanted, f"{name}: pods use {used}, before_use.md has {wanted}"
    named = set(re.findall(r"stowaged?(?:-[a-z]+)+", (deploy / "helm" / "production.yaml").read_text().split("\ntls:")[0]))
    assert named == set(documented), f"production.yaml needs {named}, before_use.md has {set(documented)}"
    print(f"{len(documented)} Secrets, as before_use.md makes them")


def refuses(check, resources):
    try:
        check(resources)
    except AssertionError:
        return True
    return False


def check_pins(overlays, yaml):
    """Overlays of users that say which images: by digest, elsewhere, by a tag again; each as Kustomize makes it of tags and of pins."""
    import kustomize
    import manifests
    first, second = f"sha256:{'5e' * 32}", f"sha256:{'6f' * 32}"
    steps = (
        ([{"name": "stowaged", "newName": "registry.example:5000/team/stowaged", "digest": first}, {"name": "redis", "digest": second}],
         {"stowaged": f"registry.example:5000/team/stowaged@{first}", "redis": f"redis@{second}"}),
        ([{"name": "registry.example:5000/team/stowaged", "digest": second}, {"name": "redis", "newName": "registry.example:5000/redis"}],
         {"stowaged": f"registry.example:5000/team/stowaged@{second}", "redis": f"registry.example:5000/redis@{second}"}),
        ([{"name": "registry.example:5000/team/stowaged", "newTag": "1.2.3", "digest": first},
          {"name": "registry.example:5000/redis", "newTag": "7.2"}],
         {"stowaged": f"registry.example:5000/team/stowaged:1.2.3@{first}", "redis": "registry.example:5000/redis:7.2"}))
    with tempfile.TemporaryDirectory() as name:
        below = overlays / "production"
        for number, (images, wanted) in enumerate(steps):
            folder = pathlib.Path(name).resolve() / str(number)
            folder.mkdir()
            (folder / "kustomization.yaml").write_text(yaml.safe_dump({
                "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                "resources": [os.path.relpath(below, folder)], "images": images}))
            resources = kustomize.render(folder)
            found = {(container["name"], container["image"]) for _, container in manifests.containers(resources)}
            assert found == set(wanted.items()), found
            manifests.check_all(resources)
            rendered = compare_with_kubectl(folder, resources, yaml)
            below = folder
    print(f"images by digest: {rendered}")


def main():
    use_environment()
    yaml, kubernetes_validate, _ = need_packages("yaml", "kubernetes_validate", "yamllint")
    import kustomize
    import manifests
    deploy = pathlib.Path(sys.argv[1]).resolve()
    lint(deploy)
    overlays = deploy / "kubernetes" / "overlays"
    assert {folder.name for folder in overlays.iterdir()} == set(OVERLAYS), "an overlay that is not tested"
    for name, count in OVERLAYS.items():
        resources = kustomize.render(overlays / name)
        assert len(resources) == count, f"{name}: {len(resources)} resources"
        rendered = compare_with_kubectl(overlays / name, resources, yaml)
        valid = validate(resources, kubernetes_validate)
        manifests.check_all(resources)
        check_that_mistakes_are_seen(resources, kubernetes_validate)
        if name == "production":
            check_that_lost_tls_is_seen(resources)
            check_that_unreadable_secrets_are_seen(resources)
            secured = manifests.settings(resources)
            assert secured.keys() >= {"tls_cert", "token_file", "entry_key_file", "redis_ca", "decisions_redis_ca"}, secured
        print(f"{name}: {count} resources, {rendered}, {valid}")
    check_documented_secrets(deploy, {name: kustomize.render(overlays / name) for name in OVERLAYS})
    check_pins(overlays, yaml)
    print("passed")


if __name__ == "__main__":
    main()
