#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/monitoring: the dashboard asks for metrics and labels that the reference pages list (tests hold those pages to what the
programs export), and the monitors name ports that pods and Services have."""

import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import total  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "manifests" / "monitoring"
FUNCTIONS = {"sum", "max", "count", "rate", "histogram_quantile", "by"}
# Made by the relabelling of router-monitor.yaml, and by Prometheus for histograms.
ADDED_LABELS = {"eldr_policy", "le"}


def documented():
    """{metric: labels} of the tables in docs/reference, without its type column."""
    found = {}
    for page in ("router.md", "operator.md"):
        for line in (ROOT / "docs" / "reference" / page).read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if name := re.fullmatch(r"`([a-z]\w+_\w+)`", cells[0]):
                labels = cells[2] if page == "operator.md" and len(cells) > 3 else cells[1]
                found[name[1]] = set(re.findall(r"\w+", labels))
    return found


def metrics_in(expression):
    """{metric: labels that are matched on} of a PromQL expression."""
    found = {}
    for name, labels in re.findall(
        r"([a-z_:][\w:]*)(?:\{([^}]*)\})?(?=[\s)\[]|$)", re.sub(r"\bby \([^)]*\)", "", expression)
    ):
        if name not in FUNCTIONS:
            found[name] = set(re.findall(r"(\w+)\s*[=!]", labels))
    return found


def base_name(metric, known):
    """A histogram's series are named after it."""
    stem = re.sub(r"_(bucket|sum|count)$", "", metric)
    return metric if metric in known else stem


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dashboard = json.loads((FOLDER / "dashboard.json").read_text())
        cls.panels = [p for p in cls.dashboard["panels"] if p["type"] != "row"]
        cls.known = documented()

    def expressions(self):
        return [(p["title"], t["expr"], t["legendFormat"]) for p in self.panels for t in p["targets"]]

    def test_the_pages_were_read(self):
        self.assertGreater(len(self.known), 40)
        self.assertEqual(self.known["eldr_router_decisions_total"], {"policy", "reason"})
        self.assertEqual(self.known["controller_runtime_reconcile_total"], {"controller", "result"})

    def test_every_metric_exists(self):
        count = 0
        for title, expression, _ in self.expressions():
            used = metrics_in(expression)
            self.assertTrue(used, f"{title}: no metric in {expression}")
            for metric, labels in used.items():
                count += 1
                name = base_name(metric, self.known)
                self.assertIn(name, self.known, f"{title}: {metric}")
                self.assertLessEqual(labels, self.known[name] | ADDED_LABELS, f"{title}: {metric}")
        self.assertGreater(count, 35)

    def test_every_label_that_is_grouped_by_or_shown_exists(self):
        for title, expression, legend in self.expressions():
            labels = set().union(*(self.known[base_name(m, self.known)] for m in metrics_in(expression)))
            grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
            self.assertLessEqual(grouped, labels | ADDED_LABELS, title)
            self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)), grouped, title)

    def test_every_metric_of_the_router_that_tells_of_trouble_is_shown(self):
        shown = {base_name(m, self.known) for _, e, _ in self.expressions() for m in metrics_in(e)}
        troubles = {
            m
            for m in self.known
            if re.match(r"eldr_router_.*(refused|retries|deadlines|broken|fail|eject)", m)
        }
        # Told by what is shown: who is ejected, and reloads of files, which the operator's routers do not have.
        told = {"eldr_router_ejections_total"}
        self.assertGreaterEqual(len(troubles), 7)
        self.assertEqual(troubles - shown - told, set())

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in self.dashboard["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken.add((x, y))
            self.assertLessEqual(place["x"] + place["w"], 24)
        identities = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(identities), len(set(identities)))


class MonitorTest(unittest.TestCase):
    """Text is looked for in the files: the kinds are the Prometheus operator's, whose schema is not at hand."""

    def assert_says(self, file, text):
        self.assertIn(text, file.read_text(), file)

    def test_the_operator_s_service_has_the_port(self):
        self.assert_says(FOLDER / "operator-monitor.yaml", "{port: metrics, path: /metrics")
        service = ROOT / "manifests" / "base" / "metrics-service.yaml"
        self.assert_says(service, "{name: metrics, port: 8080")
        for file in (service, FOLDER / "operator-monitor.yaml"):
            self.assert_says(file, "{app.kubernetes.io/name: eldr-operator")

    def test_router_pods_have_the_port_and_the_labels(self):
        deployment = (ROOT / "tests" / "operator" / "golden" / "router-objects.json").read_text()
        self.assert_says(FOLDER / "router-monitor.yaml", "port: admin")
        self.assertRegex(deployment, r'"containerPort": 9090,\s*"name": "admin"')
        for label in ("app.kubernetes.io/name", "app.kubernetes.io/instance"):
            self.assertIn(f'"{label}"', deployment)
            self.assert_says(
                FOLDER / "router-monitor.yaml", re.sub(r"[./]", "_", label) if "instance" in label else label
            )

    def test_workers_have_the_port_and_the_labels(self):
        self.assert_says(FOLDER / "workers-monitor.yaml", "values: [prefill, decode]")
        for pool in ("prefill", "decode"):
            file = ROOT / "manifests" / "samples" / "qwen3-30b-a3b" / f"{pool}.yaml"
            self.assert_says(file, "{name: http, containerPort: 8000")
            self.assert_says(file, f"app: {pool}")


if __name__ == "__main__":
    sys.exit(total.run())
