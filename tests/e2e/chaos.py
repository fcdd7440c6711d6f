# SPDX-License-Identifier: Apache-2.0
"""Chapters that only the end-to-end test tells: crashes in the middle, impatient users, wrong policies."""

import json
import time

from crash import kill_container
from eldr_demo.kubectl import KubectlError
from eldr_demo.policy import active, condition, is_true
from eldr_demo.story import rolled
from eldr_demo.workers import cluster_id


def operator_dies_in_a_job(story):
    story.console.chapter("The operator is killed while a calibration Job runs")
    before = active(story.policy.read()).get("name")
    story.policy.patch({"model": {"revision": "operator-dies"}})

    def running():
        for job in story.kubectl.list("jobs", "eldr.dev/policy=demo"):
            if (
                job.get("status", {}).get("active")
                and before.removeprefix("demo-c-") not in job["metadata"]["name"]
            ):
                return job
        return None

    job = story.kubectl.wait(running, 60)
    story.console.claim("a Job for the new revision runs", bool(job))
    operators = story.kubectl.run(
        "get", "pods", "-n", "eldr-system", "-l", "app.kubernetes.io/name=eldr-operator", "-o", "json"
    )
    for pod in json.loads(operators)["items"]:
        kill_container(story.kubectl, pod, "eldr-operator")
    policy = story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("name") != before,
        180,
        story.console,
        "a new operator brings the policy to Ready",
    )
    again = story.kubectl.get("job", job["metadata"]["name"]) if job else None
    same = again is None or again["metadata"]["uid"] == job["metadata"]["uid"]
    story.console.claim(
        "the Job that ran was used, not started again", bool(job) and same, active(policy).get("name", "")
    )


def router_dies_under_traffic(story):
    story.console.chapter("A router is killed while traffic runs")
    traffic = story.traffic(seed=5)
    time.sleep(4)
    # A router of the last rollout may still be ending: it serves nobody, so its crash would show nothing.
    router = story.kubectl.ready_pods("app.kubernetes.io/name=eldr-router")[0]
    crashed = kill_container(story.kubectl, router, "eldr-router")
    time.sleep(8)
    late = len(traffic.results.failures)
    time.sleep(6)
    results = traffic.stop()
    # Its streams break at once; until the kubelet has seen the crash, every other new connection still goes to it.
    story.console.claim(
        "what was on the killed router broke, and little else",
        (late > 0 or not crashed) and late <= 3 * traffic.concurrency,
        f"{late} of {results.completed + late} requests",
    )
    story.console.claim(
        "soon after, no request fails",
        len(results.failures) == late,
        f"{len(results.failures) - late} failed",
    )
    rolled(story, "the routers are complete again")


def scale_up_and_down_quickly(story):
    story.console.chapter("The pool is scaled 6, 3, 5, 4 within seconds, while traffic runs")
    traffic = story.traffic(seed=6, concurrency=16)
    for replicas in (3, 5, 4):
        time.sleep(2)
        story.kubectl.run("scale", "deployment/decode", f"--replicas={replicas}")
    story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("clusters") == 4,
        180,
        story.console,
        "it settles at four clusters",
    )
    ids = [cluster_id(pod) for pod in story.workers.pods()]
    story.console.claim(
        "four pods, four different ids",
        len(ids) == 4 and len(set(ids)) == 4 and None not in ids,
        f"ids {ids}",
    )
    story.count_failures(traffic.stop(), "while scaling quickly")


def own_scale(story):
    story.console.chapter("kubectl scale eldrpolicy demo --replicas=5: the policy scales its target")
    story.kubectl.run("scale", "eldrpolicy", "demo", "--replicas=5")
    story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("clusters") == 5,
        180,
        story.console,
        "the policy is Ready with five clusters",
    )
    target = story.kubectl.get("deployment", "decode")
    story.console.claim("the target has five replicas", target["spec"]["replicas"] == 5)
    story.kubectl.run("scale", "eldrpolicy", "demo", "--replicas=6")
    story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("clusters") == 6, 180, story.console, "and with six"
    )


def wrong_policies(story):
    story.console.chapter("Policies of somebody who is new to this")
    wrong = {
        "an unknown policy name": ({"routing": {"policy": "Fastest"}}, "Fastest"),
        "tau that is no number": ({"routing": {"tau": "wide"}}, "tau"),
        "two data sets at once": (
            {"dataset": {"url": {"url": "https://example.com/p.jsonl", "sha256": "0" * 64}}},
            "exactly one",
        ),
    }
    for what, (spec, word) in wrong.items():
        try:
            story.policy.patch(spec)
            story.console.claim(f"{what} is refused", False, "it was accepted")
        except KubectlError as error:
            story.console.claim(
                f"{what} is refused, and the message says {word!r}", word in str(error), str(error)[-160:]
            )
    target = story.policy.read()["spec"]["decode"]["scaleTargetRef"]
    story.policy.patch({"decode": {"scaleTargetRef": {**target, "name": "no-such-target"}}})
    policy = story.policy.wait_until(
        lambda p: condition(p, "WorkersAvailable")["status"] == "False",
        30,
        story.console,
        "a target that does not exist shows in WorkersAvailable",
    )
    message = condition(policy, "WorkersAvailable")["message"]
    story.console.claim("and the message names it", "no-such-target" in message, message)
    story.policy.patch({"decode": {"scaleTargetRef": target}})
    rolled(story, "put right, the policy is Ready again")
