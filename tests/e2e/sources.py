# SPDX-License-Identifier: Apache-2.0
"""Chapters on where a calibration's data come from: an engine that runs already, a recorded trace, prompts that are no good."""

import json

from eldr_demo import installation
from eldr_demo.policy import active, condition, is_true
from eldr_demo.story import rolled


def running_engine(story):
    story.console.chapter("The engine is a Service that runs already, not a sidecar of the Job")
    before = active(story.policy.read()).get("name")
    engine = {"job": None, "service": {"url": "http://engine.serving:8000"}}
    story.policy.patch({"model": {"revision": "by-service"}, "calibration": {"engine": engine}})
    policy = story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("name") not in (None, before),
        180,
        story.console,
        "calibrated on the running engine and rolled out",
    )
    job = story.kubectl.get("job", policy["status"]["calibration"]["jobName"])
    containers = job["spec"]["template"]["spec"]
    story.console.claim("its Job has no engine of its own", not containers.get("initContainers"))


def recorded_trace(story):
    story.console.chapter("A recorded trace: no engine, no prompts, no GPU")
    if story.cluster.external:
        story.console.say("skipped: the trace is read from the local cluster's own volume")
        return
    policy = story.policy.read()
    spec = {key: policy["spec"][key] for key in ("model", "dataset", "calibration")}
    config = story.kubectl.get("configmap", active(policy)["name"])
    trace = config["metadata"]["annotations"]["eldr.dev/collect-hash"] + ".safetensors"
    story.policy.patch(
        {
            "dataset": {"configMap": None, "trace": {"claimName": "traces", "path": trace}},
            "calibration": {"engine": None, "cache": None},
        }
    )
    policy = story.policy.wait_until(
        lambda p: is_true(p, "Ready") and active(p).get("name") not in (None, config["metadata"]["name"]),
        180,
        story.console,
        "fitted from the recorded trace and rolled out",
    )
    job = story.kubectl.get("job", policy["status"]["calibration"]["jobName"])
    story.console.claim("its Job asks for no GPU", "nvidia.com/gpu" not in json.dumps(job["spec"]))
    story.policy.patch({"dataset": {**spec["dataset"], "trace": None}, "calibration": spec["calibration"]})
    rolled(story, "back on the prompts, the policy is Ready")


def prompts_that_are_no_good(story):
    story.console.chapter("Prompts that are no JSON lines: refused before a GPU is asked for")
    good = active(story.policy.read()).get("name")
    folder = story.cluster.state / "prompts"
    bad = folder / "bad.jsonl"
    bad.write_text('{"prompt": "fine"}\nnot json\n{"text": "no prompt"}\n')
    installation.put_prompts(story.kubectl, bad)
    policy = story.policy.wait_until(
        lambda p: condition(p, "DatasetAvailable")["reason"] == "DatasetInvalid",
        30,
        story.console,
        "DatasetAvailable turns False",
    )
    message = condition(policy, "DatasetAvailable")["message"]
    story.console.claim("the message names a line", "line 2" in message, message)
    story.console.claim("the old config stays active", active(policy).get("name") == good, good)
    installation.put_prompts(story.kubectl, story.edited)
    rolled(story, "with good prompts again, the policy is Ready")
