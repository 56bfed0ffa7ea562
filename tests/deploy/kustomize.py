"""Renders a folder of Kustomize as `kustomize build` does, for what deploy/ uses of it and nothing more: resources, components,
namespace, labels (of metadata alone), configMapGenerator (files), images (newName, newTag, digest), patches (a file of one strategic
merge). Anything else in a kustomization is an error, so that nothing is left out in silence.
"""
import copy
import hashlib
import json
import pathlib
import re

import yaml

FIELDS = {"apiVersion", "kind", "namespace", "labels", "resources", "components", "configMapGenerator", "images", "patches"}
CLUSTER_WIDE = {"Namespace"}
# By what elements of a list are told apart, after the API's own definition (patchMergeKey); other lists are replaced.
MERGE_KEYS = {"containers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath", "ports": "containerPort"}


def render(folder):
    """The resources, as dictionaries."""
    folder = pathlib.Path(folder)
    plan = read_one(folder / "kustomization.yaml")
    assert plan["kind"] == "Kustomization", folder
    return apply(plan, folder, [])


def apply(plan, folder, resources):
    unknown = set(plan) - FIELDS
    assert not unknown, f"{folder}: this renderer does not know {unknown}"
    own = []
    for name in plan.get("resources", []):
        path = folder / name
        own += render(path) if path.is_dir() else read_all(path)
    own += [config_map(generator, folder) for generator in plan.get("configMapGenerator", [])]
    resources = resources + own
    for name in plan.get("components", []):
        part = read_one(folder / name / "kustomization.yaml")
        assert part["kind"] == "Component", name
        resources = apply(part, folder / name, resources)
    for patch in plan.get("patches", []):
        assert set(patch) == {"path"}, f"{folder}: only patches by path"
        patch_one(read_one(folder / patch["path"]), resources)
    for resource in resources:
        set_namespace(resource, plan.get("namespace"))
        for labels in plan.get("labels", []):
            assert set(labels) == {"pairs"}, f"{folder}: labels of metadata alone"
            resource["metadata"].setdefault("labels", {}).update(labels["pairs"])
        for image in plan.get("images", []):
            unknown = set(image) - {"name", "newName", "newTag", "digest"}
            assert not unknown, f"{folder}: images by {unknown}"
            set_image(resource, image)
    name_config_maps(resources)
    return resources


def read_all(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def read_one(path):
    documents = read_all(path)
    assert len(documents) == 1, f"{path}: {len(documents)} documents"
    return documents[0]


def config_map(generator, folder):
    assert set(generator) == {"name", "files"}, f"{folder}: config maps of files alone"
    data = {name: (folder / name).read_text() for name in generator["files"]}
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
    resource["#generated"] = f"{generator['name']}-{content_hash(resource)}"
    return resource


def content_hash(resource):
    """As Kustomize makes it: ten hexadecimal digits of SHA-256, less the digits that could spell words. The name is not in it."""
    text = json.dumps({"data": resource["data"], "kind": "ConfigMap", "name": ""},
                      sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:10].translate(str.maketrans("013ae", "ghkmt"))


def name_config_maps(resources):
    """Gives generated maps the names with their hash, and users of them, too."""
    names = {}
    for resource in resources:
        name = resource.pop("#generated", None)
        if name:
            names[resource["metadata"]["name"]] = name
            resource["metadata"]["name"] = name
    for spec in pod_specs(resources):
        for volume in spec.get("volumes", []):
            source = volume.get("configMap")
            if source:
                source["name"] = names.get(source["name"], source["name"])


def pod_specs(resources):
    for resource in resources:
        spec = resource.get("spec", {}).get("template", {}).get("spec")
        if spec:
            yield spec


def set_namespace(resource, namespace):
    if namespace and resource["kind"] not in CLUSTER_WIDE:
        resource["metadata"]["namespace"] = namespace


def set_image(resource, image):
    for spec in pod_specs([resource]):
        for container in spec["containers"]:
            name, old = split_image(container["image"])
            if name == image["name"]:
                tag = f":{image['newTag']}" if "newTag" in image else ""
                digest = f"@{image['digest']}" if "digest" in image else ""
                container["image"] = image.get("newName", name) + (tag + digest or old)


def split_image(image):
    """Its name, whose registry may have a port, and its tag and digest with the characters before them."""
    return re.fullmatch(r"(.+?)((?::[^/:@]+)?(?:@.+)?)", image).groups()


def patch_one(patch, resources):
    def same(resource):
        return resource["kind"] == patch["kind"] and resource["metadata"]["name"] == patch["metadata"]["name"]
    found = [resource for resource in resources if same(resource)]
    assert len(found) == 1, f"a patch of {patch['kind']} {patch['metadata']['name']}: {len(found)} of it"
    merge(found[0], copy.deepcopy(patch))


def merge(into, patch):
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        elif isinstance(value, list) and key in MERGE_KEYS and key in into:
            merge_lists(into[key], value, MERGE_KEYS[key])
        else:
            into[key] = without_nulls(value)


def merge_lists(into, patch, key):
    """What the patch names comes first, in its order."""
    named = []
    for element in patch:
        old = next((other for other in into if other.get(key) == element[key]), {})
        merge(old, element)
        named.append(old)
    into[:] = named + [other for other in into if not any(other is one for one in named)]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value
