# SPDX-License-Identifier: Apache-2.0
"""The story, chapter by chapter. Each chapter is one function; each ends in claims that must hold."""

import time
from dataclasses import dataclass
from pathlib import Path

from . import installation
from .access import access_to
from .policy import Policy, active, condition, describe, is_true
from .traffic import Traffic
from .workers import Workers, cluster_id

MODEL = "demo/moe-8x64"
CONCURRENCY = 32
TOKENS = 48


@dataclass
class Story:
    console: object
    cluster: object
    kubectl: object
    url: str = ""
    prompts: list = None
    edited: Path = None

    def __post_init__(self):
        self.policy = Policy(self.kubectl, "demo")
        self.access = access_to(self.cluster, self.kubectl)
        self.workers = Workers(self.kubectl, self.access)
        self.numbers = {}

    def traffic(self, requests=None, seed=0, concurrency=CONCURRENCY):
        return Traffic(
            self.url, MODEL, self.prompts, concurrency, TOKENS, requests=requests, seed=seed
        ).start()

    def count_failures(self, results, what):
        for failure in results.failures[:5]:
            self.console.say(f"failed request: {failure}")
        self.console.claim(
            f"{what}: not one failed request",
            not results.failures and results.completed > 0,
            f"{results.completed} completed, {len(results.failures)} failed",
        )


def install(story):
    story.console.chapter("Operator, four decode and two prefill workers, prompts of four domains")
    installation.install_operator(story.kubectl, story.console)
    installation.install_workers(story.kubectl, story.cluster)
    folder = Path(story.cluster.state) / "prompts"
    first = installation.make_prompts(1, folder)
    story.edited = installation.make_prompts(2, folder)
    story.prompts = installation.read_prompts(
        installation.make_prompts(3, folder)
    )  # traffic is not what was calibrated on
    installation.put_prompts(story.kubectl, first)
    labels = sorted({prompt["label"] for prompt in story.prompts})
    story.console.say(
        f"{len(story.prompts)} prompts to calibrate on and as many others to send, labels: {', '.join(labels)}"
    )
    ready = story.kubectl.wait(lambda: len(story.workers.pods()) == 4, 60, what="workers")
    story.console.claim("four decode workers are ready", bool(ready))


def apply_policy(story):
    story.console.chapter("kubectl apply -f policy.yaml, and the conditions until Ready")
    installation.apply_policy(story.kubectl, story.cluster)
    policy = story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("clusters") == 4,
        150,
        story.console,
        "the policy is Ready with four clusters",
    )
    story.console.say(story.kubectl.run("get", "eldrpolicy").strip().replace("\n", "\n  "))
    for kind in ("Accepted", "DatasetAvailable", "WorkersAvailable", "Calibrated", "RouterUpdated"):
        story.console.claim(
            f"condition {kind} is True", is_true(policy, kind), condition(policy, kind)["reason"]
        )
    ids = [cluster_id(pod) for pod in story.workers.pods()]
    story.console.claim("every decode pod has its own cluster id", ids == [0, 1, 2, 3], f"ids {ids}")
    story.numbers["rho"] = policy.get("status", {}).get("calibration", {}).get("rho", "?")
    find_router(story)


def find_router(story):
    service = story.kubectl.get("service", "demo-router")
    story.url = story.access.service(service, service["spec"]["ports"][0]["port"])


def measure(story, requests, seed):
    """Traffic of a fixed size; returns (client results, request-weighted experts a step, rows of domain against worker)."""
    story.workers.reset()
    results = story.traffic(requests=requests, seed=seed).join()
    stats = story.workers.stats()
    weight = sum(s["tokens"] for _, s in stats)
    experts = sum(s["active_experts"] * s["tokens"] for _, s in stats) / weight if weight else float("nan")
    labels = sorted({label for _, s in stats for label in s["by_label"]})
    rows = [[label, *(s["by_label"].get(label, {}).get("requests", 0) for _, s in stats)] for label in labels]
    header = ["domain", *(f"worker {cluster_id(pod)}" for pod, _ in stats)]
    story.console.table(header, rows)
    return results, experts


def compare(story):
    story.console.chapter("Traffic by locality band, then the same traffic by join-shortest-queue")
    requests = 320
    band, band_experts = measure(story, requests, seed=1)
    story.count_failures(band, "LocalityBand")
    before = active(story.policy.read()).get("name")
    story.policy.patch({"routing": {"policy": "JoinShortestQueue"}})
    rolled(story, "the routers rolled to JoinShortestQueue")
    queue, queue_experts = measure(story, requests, seed=1)
    story.count_failures(queue, "JoinShortestQueue")
    story.policy.patch({"routing": {"policy": "LocalityBand"}})
    policy = rolled(story, "the routers rolled back to LocalityBand")
    story.console.claim(
        "a change of routing recalibrated nothing", active(policy).get("name") == before, before
    )
    times = [results.median(results.per_token_s) * 1000 for results in (band, queue)]
    story.console.table(
        ["policy", "active experts a step", "ms a token, median"],
        [
            ["LocalityBand", f"{band_experts:.1f}", f"{times[0]:.1f}"],
            ["JoinShortestQueue", f"{queue_experts:.1f}", f"{times[1]:.1f}"],
        ],
    )
    experts_saved, time_saved = 1 - band_experts / queue_experts, 1 - times[0] / times[1]
    story.console.claim(
        "locality reads fewer experts a step", experts_saved > 0.02, f"{experts_saved:+.1%} saved"
    )
    story.numbers["active experts saved"] = f"{experts_saved:.1%}"
    story.numbers["time per token saved"] = f"{time_saved:.1%}"


def rolled(story, what):
    return story.policy.wait_until(
        lambda p: is_true(p, "Ready") and is_true(p, "RouterUpdated"), 120, story.console, what
    )


def scale(story):
    story.console.chapter("kubectl scale deployment/decode --replicas=6, while traffic runs")
    started = time.monotonic()
    traffic = story.traffic(seed=2)
    story.kubectl.run("scale", "deployment/decode", "--replicas=6")
    story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("clusters") == 6,
        180,
        story.console,
        "Ready with six clusters",
    )
    ids = story.kubectl.wait(
        lambda: [
            i for i in [[cluster_id(pod) for pod in story.workers.pods()]] if None not in i and len(i) == 6
        ],
        30,
    )
    story.console.claim(
        "six decode pods have six cluster ids",
        ids is not None and len(set(ids[0])) == 6,
        f"ids {ids and ids[0]}",
    )
    took = time.monotonic() - started
    time.sleep(3)
    story.count_failures(traffic.stop(), "while scaling to six")
    story.numbers["scale to six followed in"] = f"{took:.0f} s"


def recalibrate(story):
    story.console.chapter("An edit of the data set, then a new model revision: each recalibrates")
    before = active(story.policy.read()).get("name")
    installation.put_prompts(story.kubectl, story.edited)
    edited = story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("name") not in (None, before),
        180,
        story.console,
        "the edited data set was calibrated and rolled out",
    )
    story.policy.patch({"model": {"revision": "2"}})
    known = {before, active(edited).get("name"), None}
    story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("name") not in known,
        180,
        story.console,
        "the new model revision was calibrated and rolled out",
    )


def bad_dataset(story):
    story.console.chapter("A bad data set: a clear condition, and the old config keeps serving")
    good = active(story.policy.read()).get("name")
    story.policy.patch({"dataset": {"configMap": {"name": "no-such-prompts"}}})
    policy = story.policy.wait_until(
        lambda p: condition(p, "DatasetAvailable")["status"] == "False",
        30,
        story.console,
        "DatasetAvailable turns False",
    )
    found = condition(policy, "DatasetAvailable")
    story.console.say(f"DatasetAvailable=False {found['reason']}: {found['message']}")
    story.console.claim("the message names the ConfigMap", "no-such-prompts" in found["message"])
    story.console.claim("the old config stays active", active(policy).get("name") == good, good)
    story.count_failures(story.traffic(requests=40, seed=3).join(), "with a bad data set")
    jobs = story.policy.jobs()
    story.policy.patch({"dataset": {"configMap": {"name": "prompts"}}})
    policy = rolled(story, "put right again, the policy is Ready")
    story.console.claim(
        "going back needed no new calibration",
        active(policy).get("name") == good and story.policy.jobs() == jobs,
        good,
    )


def delete_policy(story):
    story.console.chapter("kubectl delete eldrpolicy demo: nothing is left behind")
    story.kubectl.run("delete", "eldrpolicy", "demo", "--wait=true", timeout=90)
    kinds = "deployments,services,configmaps,jobs,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,pods"

    def left():
        text = story.kubectl.run("get", kinds, "-l", "eldr.dev/policy=demo", "-o", "name")
        return [line for line in text.splitlines() if line]

    gone = story.kubectl.wait(lambda: not left(), 120)
    story.console.claim(
        "nothing that the policy owned is left", bool(gone), "" if gone else ", ".join(left())
    )
    pods = len(story.workers.pods())
    story.console.claim("the workers are untouched", pods == 6, f"{pods} decode pods")


CHAPTERS = (install, apply_policy, compare, scale, recalibrate, bad_dataset, delete_policy)


def tell(story, chapters=CHAPTERS):
    """Runs the chapters in order. A chapter that breaks is a failed claim; what follows it would only confuse."""
    try:
        for chapter in chapters:
            chapter(story)
    except Exception as error:  # reported as a failed claim, with its text
        story.console.claim(
            f"chapter {chapter.__name__} ran to its end", False, f"{type(error).__name__}: {error}"
        )
    finally:
        story.access.close()
    story.console.chapter("The numbers")
    for name, value in story.numbers.items():
        story.console.say(f"{name}: {value}")
    if story.console.failed:
        story.console.say(describe(story.policy.read()))
