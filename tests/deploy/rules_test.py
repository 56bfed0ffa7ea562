#!/usr/bin/env python3
"""The rules of Prometheus: promtool's check, its unit tests, and that each alert has one that raises it and one that does not.

    rules_test.py DEPLOY_DIRECTORY

Exits with 77, "skipped", where promtool or PyYAML is missing.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import need_packages, need_programs, use_environment  # noqa: E402

TESTS = pathlib.Path(__file__).parent / "rules"


def run(*command):
    print("+", *(str(word) for word in command))
    subprocess.run(command, check=True)


def alerts_of(rules):
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule}


def check_each_alert_is_tested(alerts, files, yaml):
    raised, quiet = set(), set()
    for file in files:
        for test in yaml.safe_load(file.read_text())["tests"]:
            for case in test.get("alert_rule_test", []):
                (raised if case["exp_alerts"] else quiet).add(case["alertname"])
    assert raised | quiet <= set(alerts), f"tests of alerts that are none: {(raised | quiet) - set(alerts)}"
    assert raised == set(alerts), f"never raised in a test: {set(alerts) - raised}"
    assert quiet == set(alerts), f"never quiet in a test: {set(alerts) - quiet}"
    print(f"{len(alerts)} alerts, each raised and each quiet in tests")


def check_runbook(alerts, root):
    """Each alert leads to its own place on a page that is there, and says how bad it is."""
    for name, alert in alerts.items():
        page, _, place = alert["annotations"]["runbook_url"].partition("#")
        assert place == name.lower(), f"{name} leads to {place}"
        assert f'<a id="{place}"></a>{name} ' in (root / page).read_text(), f"{page} has no place for {name}"
        assert alert["labels"]["severity"] in ("critical", "warning"), name
    places = re.findall(r'<a id="\w+"></a>(Stowage\w+)', (root / "server" / "operating.md").read_text())
    assert sorted(places) == sorted(alerts), f"the page and the rules differ: {set(places) ^ set(alerts)}"
    print("each alert leads to its place in the runbook")


def check_resource(deploy, rules, yaml):
    """What is printed for an operator of Prometheus has the same rules."""
    text = subprocess.run([deploy / "monitoring" / "prometheus_rule", "ml"], check=True, capture_output=True, text=True).stdout
    resource = yaml.safe_load(text)
    assert (resource["kind"], resource["metadata"]["namespace"]) == ("PrometheusRule", "ml"), resource["metadata"]
    groups = [group for file in rules for group in yaml.safe_load(file.read_text())["groups"]]
    assert resource["spec"] == {"groups": groups}
    print(f"prometheus_rule prints the {len(groups)} groups")


def check_runbook_base(deploy, yaml):
    """Where the pages are can be said; nothing else of the rules changes by it."""
    def printed(*words):
        done = subprocess.run([deploy / "monitoring" / "prometheus_rule", *words], capture_output=True, text=True)
        return done.returncode, done.stdout

    plain = printed("ml")[1]
    for base in ("https://runbooks.example/stowage", "https://runbooks.example/stowage/"):
        code, text = printed("ml", base)
        assert code == 0 and text == plain.replace("runbook_url: ", "runbook_url: https://runbooks.example/stowage/"), base
    urls = re.findall("runbook_url: (.*)", text)
    assert urls and all(url.startswith("https://runbooks.example/stowage/server/operating.md#") for url in urls), urls
    yaml.safe_load(text)
    for wrong in ("runbooks.example", "https://runbooks.example/#x", "https://runbooks.example/a b"):
        assert printed("ml", wrong) == (2, ""), wrong
    print("runbooks have the URL that is said")


def main():
    use_environment()
    need_programs("promtool")
    yaml, = need_packages("yaml")
    deploy = pathlib.Path(sys.argv[1]).resolve()
    rules = sorted((deploy / "monitoring").glob("*.rules.yml"))
    tests = sorted(TESTS.glob("*.test.yml"))
    assert len(rules) == 2 and len(tests) >= 2, (rules, tests)
    run("promtool", "check", "rules", "--lint-fatal", *rules)
    run("promtool", "test", "rules", *tests)
    run("promtool", "check", "config", "--syntax-only", deploy / "compose" / "prometheus.yml")
    alerts = alerts_of(yaml.safe_load((deploy / "monitoring" / "alerts.rules.yml").read_text()))
    check_each_alert_is_tested(alerts, tests, yaml)
    check_runbook(alerts, deploy.parent)
    check_resource(deploy, rules, yaml)
    check_runbook_base(deploy, yaml)
    print("passed")


if __name__ == "__main__":
    main()
