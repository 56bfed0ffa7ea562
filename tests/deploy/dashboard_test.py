#!/usr/bin/env python3
"""Runs every query of the dashboard, and every rule, in a Prometheus that scrapes a stowaged under load: each must answer with data.

    dashboard_test.py STOWAGED PROTO_DIRECTORY DEPLOY_DIRECTORY

Exits with 77, "skipped", where a program or package is missing.
"""
import asyncio
import json
import math
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from stowaged_client import generate, need_client, need_packages, need_programs, use_environment  # noqa: E402

import plan_load  # noqa: E402

LOAD_SECONDS = 15
# What Grafana puts in for a picture of a quarter of an hour, at the pace of scrapes here.
VARIABLES = {"$__rate_interval": "8s", "$__range": "15m", "$job": ".*"}


def taken_port():
    """A socket that has the port, and does not listen: nobody else is given the port, and a program that asks for it by
    number, with SO_REUSEADDR, has it."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", 0))
    return taken


class Prometheus:
    """The shipped configuration, with faster scrapes of one target that is known by address."""

    def __init__(self, deploy, folder, target_port):
        import yaml
        config = yaml.safe_load((deploy / "compose" / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(deploy / "monitoring" / pathlib.Path(name).name) for name in config["rule_files"]]
        scrape = next(job for job in config["scrape_configs"] if job["job_name"] == "stowaged")
        del scrape["dns_sd_configs"]
        scrape["static_configs"] = [{"targets": [f"127.0.0.1:{target_port}"]}]
        config["scrape_configs"] = [scrape]
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self._taken = taken_port()
        self.address = "127.0.0.1:%d" % self._taken.getsockname()[1]
        self.process = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address={self.address}", "--log.level=error"])

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def wait_until_it_scrapes(self):
        """What is counted before the first look at a counter is no increase."""
        for _ in range(200):
            try:
                if self.get("query", query="stowage_build_info")["result"]:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("prometheus does not scrape")

    def close(self):
        self.process.kill()
        self.process.wait()
        self._taken.close()


def queries(dashboard):
    """(panel, query, legend) of all panels."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]


def filled_in(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, f"a variable that is not known: {expression}"
    return expression


def series_with_data(prometheus, expression):
    now = time.time()
    answer = prometheus.get("query_range", query=expression, start=now - LOAD_SECONDS - 5, end=now, step=1)
    return [series for series in answer["result"]
            if any(not math.isnan(float(value)) for _, value in series["values"])]


def check_dashboard(prometheus, dashboard):
    wrong = []
    count = 0
    for title, expression, legend in queries(dashboard):
        count += 1
        found = series_with_data(prometheus, filled_in(expression))
        if not found:
            wrong.append(f"{title}: no data: {expression}")
        for label in re.findall(r"{{(\w+)}}", legend):
            if any(label not in series["metric"] for series in found):
                wrong.append(f"{title}: a series without the label {label} of its legend: {expression}")
    assert count > 50, f"{count} queries"
    assert not wrong, "\n" + "\n".join(wrong)
    print(f"dashboard: {count} queries, all with data")


def check_rules(prometheus):
    recorded = alerts = 0
    for group in prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError')}"
            if rule["type"] == "recording":
                recorded += 1
                assert series_with_data(prometheus, rule["name"]), f"{rule['name']}: no data"
            else:
                alerts += 1
    assert recorded > 10 and alerts > 20, (recorded, alerts)
    print(f"rules: {recorded} recorded with data, {alerts} alerts evaluated")


def check_that_alerts_fire(prometheus):
    """The load has jobs over their budget and a broken file of tokens; both alerts wait for nothing but the next look."""
    expected = {"StowageBudgetViolated", "StowageFilesRefused"}
    firing = set()
    for _ in range(100):
        firing = {alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"}
        if expected <= firing:
            print("alerts that fire:", ", ".join(sorted(firing)))
            return
        time.sleep(0.1)
    raise AssertionError(f"only {firing} fire, {expected} should")


def main():
    use_environment()
    need_client()
    need_programs("openssl", "prometheus", "redis-server")
    need_packages("yaml")
    stowaged, protos, deploy = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    dashboard = json.loads((deploy / "monitoring" / "dashboard.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        generate(protos, folder)
        cluster = plan_load.Cluster(stowaged, folder)
        prometheus = Prometheus(deploy, folder, cluster.metrics_port)
        try:
            prometheus.wait_until_it_scrapes()
            asyncio.run(plan_load.run(cluster, LOAD_SECONDS))
            check_dashboard(prometheus, dashboard)
            check_rules(prometheus)
            check_that_alerts_fire(prometheus)
        finally:
            prometheus.close()
            cluster.close()
    print("passed")


if __name__ == "__main__":
    main()
