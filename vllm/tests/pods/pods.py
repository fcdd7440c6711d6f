# SPDX-License-Identifier: Apache-2.0
"""The checks of `run`: calibrate, route, scale and replace real vLLM workers that are pods. Run by `run`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asking
import objects
from cluster import NAMESPACE, ROOT, TOOLS, Cluster, Object, is_ready, run
from corpus import prompts
from steps import Skipped, run_steps, total, wait_for

ANSWER_TOKENS = 24
SAMPLE_SIZE, ASKED = 40, 12
MEMORY_OF_A_WORKER_MIB = 3500
START_SECONDS = 600


def address(pod: Object) -> str:
    return f"http://{pod['status']['podIP']}:8000"


def metric(pod: Object, name: str) -> float:
    """The sum of a metric's samples of a worker."""
    return asking.metric(address(pod), name, timeout=20)


def available_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")


class System:
    """The cluster, what runs in it, and what a single vLLM answered."""

    def __init__(self, cluster: Cluster, model: Path, work: Path) -> None:
        self.cluster, self.work = cluster, work
        self.host = objects.Host(model)
        rows = prompts(SAMPLE_SIZE, 4242)
        self.candidates = [row["prompt"] for row in rows]
        self.asked: list[str] = []
        self.dataset = "".join(json.dumps({"prompt": r["prompt"], "label": r["label"]}) + "\n" for r in rows)
        self.reference: list[list[int]] = []
        self.service = ""

    # ------------------------------------------------------------ what is asked
    def completion(self, prompt: str) -> dict[str, Any]:
        return asking.completion(objects.MODEL_NAME, prompt, ANSWER_TOKENS)

    def ask(self, url: str, prompt: str) -> tuple[Object, dict[str, str]]:
        return asking.post(url + asking.COMPLETIONS, self.completion(prompt), 180, asking.DEBUG)

    def through_service(self, index: int) -> dict[str, str]:
        answer, headers = self.ask(self.service, self.asked[index])
        choice = answer["choices"][0]
        same = choice["token_ids"] == self.reference[index]
        assert same, f"prompt {index}: another answer: {choice['text']!r}"
        assert "eldr" not in json.dumps(answer), "the counts reached the client"
        return headers

    def all_through_service(self, concurrency: int = 3) -> list[dict[str, str]]:
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(self.through_service, range(len(self.asked))))

    # ------------------------------------------------------------ what the cluster says
    def pods(self, app: str) -> list[Object]:
        """Those that are Ready. One that cannot start ends the wait for it."""
        found = self.cluster.list("pods", f"app={app}")
        for pod in found:
            for container in pod["status"].get("containerStatuses", []):
                assert container["restartCount"] < 2, f"{pod['metadata']['name']} starts again and again"
        return [pod for pod in found if is_ready(pod)]

    def status(self) -> Object:
        found: Object = self.cluster.get("eldrpolicy", "qwen3").get("status", {})
        return found

    def conditions(self) -> dict[str, str]:
        return {c["type"]: c["status"] for c in self.status().get("conditions", [])}

    def is_ready_for(self, clusters: int) -> bool:
        status = self.status()
        assert status.get("calibration", {}).get("stage") != "Failed", status["conditions"]
        return (
            status.get("activeConfig", {}).get("clusters") == clusters
            and self.conditions().get("Ready") == "True"
            and len(self.pods("decode")) == clusters
        )

    def cluster_ids(self) -> dict[str, str]:
        """Cluster id of each decode pod that is Ready."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["labels"].get("eldr.dev/cluster", "")
            for pod in self.pods("decode")
        }

    # ------------------------------------------------------------ steps
    def start_a_cluster_with_the_operator(self) -> str:
        images = [ROOT / "build" / "images" / f"{name}.tar" for name in ("operator", "router", "calibrate")]
        host_files = self.work / "host-files.tar"
        run([TOOLS / "image", host_files, objects.IMAGE, "/usr/bin/env"])
        self.cluster.start([*images, host_files])
        self.cluster.kubectl("apply", "-k", ROOT / "manifests" / "overlays" / "local")
        for what, namespace, *waiting in (
            ("crd/eldrpolicies.eldr.dev", NAMESPACE, "wait", "--for=condition=Established"),
            ("deployment/eldr-operator", "eldr-system", "rollout", "status"),
        ):
            self.cluster.kubectl(*waiting, what, "--timeout=120s", namespace=namespace, timeout=150)
        self.cluster.apply(objects.namespace())
        wait_for(
            "a service account", lambda: "default" in self.cluster.kubectl("get", "serviceaccounts"), 30, 0.2
        )
        version: str = json.loads(self.cluster.kubectl("version", "--output=json"))["serverVersion"][
            "gitVersion"
        ]
        return f"Kubernetes {version}"

    def ask_a_single_vllm(self) -> str:
        """Answers to compare with, from a pod with neither connector nor plugin."""
        self.cluster.apply(objects.single_server(self.host))
        seconds = wait_for("a single vLLM that is Ready", lambda: self.pods("single"), START_SECONDS)
        (pod,) = self.pods("single")
        answers = asking.clear_answers(
            address(pod), asking.COMPLETIONS, self.completion, self.candidates, ASKED
        )
        self.asked = [prompt for prompt, _ in answers]
        self.reference = [choice["token_ids"] for _, choice in answers]
        self.cluster.kubectl("delete", "pod", "single", "--grace-period=0", "--force")
        assert all(len(ids) == ANSWER_TOKENS for ids in self.reference)
        return f"Ready in {seconds:.0f} s"

    def the_operator_calibrates_on_an_engine_and_starts_routers(self) -> str:
        self.cluster.apply(*objects.trace_volume(self.work / "traces"), objects.prompts(self.dataset))
        self.cluster.apply(
            objects.workers(self.host, "prefill", 1),
            objects.workers(self.host, "decode", 2),
            objects.policy(self.host, sample_size=SAMPLE_SIZE, answer_tokens=ANSWER_TOKENS),
        )
        seconds = wait_for("the policy is Ready for 2 clusters", lambda: self.is_ready_for(2), 1200, 5)
        service = self.cluster.get("service", "qwen3-router")
        self.service = f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"
        assert sorted(self.cluster_ids().values()) == ["0", "1"], self.cluster_ids()
        calibration = self.status()["calibration"]
        return (
            f"Ready in {seconds:.0f} s; {calibration['requests']} requests, rho {calibration['rho']}, "
            f"{calibration['layersKept']} layers"
        )

    def answers_through_the_service_equal_a_single_vllm(self) -> str:
        headers = self.all_through_service()
        workers = {h["x-eldr-worker"] for h in headers}
        return f"{len(headers)} answers of {ANSWER_TOKENS} tokens, {len(workers)} decode workers"

    def requests_are_routed_by_their_experts_and_caches_move(self) -> str:
        headers = self.all_through_service(concurrency=1)
        assert {h["x-eldr-reason"] for h in headers} == {"signature"}, headers
        for h in headers:
            assert float(h["x-eldr-similarity"]) >= float(h["x-eldr-best-similarity"]) - 0.1 - 1e-6, h
        decode = self.pods("decode")
        transfers = sum(metric(pod, "vllm:nixl_xfer_time_seconds_count") for pod in decode)
        assert transfers > 0, "no KV cache moved over NIXL"
        assert sum(metric(pod, "vllm:nixl_num_failed_transfers_total") for pod in decode) == 0
        return f"{len(headers)} by signature; NIXL transfers between pods {transfers:.0f}"

    def a_third_decode_worker_needs_a_fit_only(self) -> str:
        if available_mib() < MEMORY_OF_A_WORKER_MIB:
            raise Skipped(f"{available_mib()} MiB are available, a worker needs {MEMORY_OF_A_WORKER_MIB}")
        self.cluster.kubectl("scale", "deployment/decode", "--replicas=3")
        ids: set[str] = set()

        def is_done() -> bool:
            # Traffic all the while: no request may fail, nor answer otherwise.
            self.all_through_service(2)
            ids.update(self.cluster_ids().values())
            return self.is_ready_for(3)

        seconds = wait_for("the policy is Ready for 3 clusters", is_done, 900)
        job = self.status()["calibration"]["jobName"]
        assert "-fit-" in job, f"{job}: collected anew, with the trace of before at hand"
        assert sorted(self.cluster_ids().values()) == ["0", "1", "2"], self.cluster_ids()
        used = {h["x-eldr-cluster"] for h in self.all_through_service() if "x-eldr-cluster" in h}
        return f"{seconds:.0f} s, job {job}; clusters that were chosen {sorted(used)}"

    def a_decode_pod_dies_and_its_cluster_id_is_taken_over(self) -> str:
        before = self.cluster_ids()
        dead, vacant = sorted(before.items())[0]
        self.cluster.kubectl("delete", "pod", dead, "--grace-period=0", "--force")

        def is_replaced() -> bool:
            self.all_through_service(2)
            now = self.cluster_ids()
            return dead not in now and sorted(now.values()) == sorted(before.values())

        seconds = wait_for(f"a new pod has cluster {vacant}", is_replaced, START_SECONDS)
        kept = {name: number for name, number in before.items() if name != dead}
        assert kept.items() <= self.cluster_ids().items(), "other pods were given new ids"
        return f"no request failed; cluster {vacant} is served again after {seconds:.0f} s"

    def a_pod_that_is_scaled_away_ends_when_it_is_idle(self) -> str:
        """The hook of the sample waits for the streams of a worker, not for the end of its grace period."""
        (gone, *_) = sorted(self.cluster_ids())
        self.cluster.kubectl("annotate", "pod", gone, "controller.kubernetes.io/pod-deletion-cost=-100")
        left = len(self.cluster_ids()) - 1
        self.cluster.kubectl("scale", "deployment/decode", f"--replicas={left}")

        def is_gone() -> bool:
            self.all_through_service(2)
            return gone not in {pod["metadata"]["name"] for pod in self.cluster.list("pods", "app=decode")}

        seconds = wait_for(f"{gone} is gone", is_gone, 150)
        return f"gone after {seconds:.0f} s of 360; no request failed"


def check_all(system: System) -> int:
    needed = [
        system.start_a_cluster_with_the_operator,
        system.ask_a_single_vllm,
        system.the_operator_calibrates_on_an_engine_and_starts_routers,
    ]
    checks = [
        system.answers_through_the_service_equal_a_single_vllm,
        system.requests_are_routed_by_their_experts_and_caches_move,
        system.a_third_decode_worker_needs_a_fit_only,
        system.a_decode_pod_dies_and_its_cluster_id_is_taken_over,
        system.a_pod_that_is_scaled_away_ends_when_it_is_idle,
    ]
    results = run_steps(needed, checks)
    if results["FAILED"]:
        system.cluster.save_evidence(system.work)
    print(f"logs: {system.work}")
    print(total(results))
    return 1 if results["FAILED"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    given: Any = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = Cluster(given.work / "cluster")
    try:
        return check_all(System(cluster, given.model, given.work))
    finally:
        if given.keep:
            print(f"export KUBECONFIG={cluster.state}/admin.kubeconfig   # namespace {NAMESPACE}")
        else:
            cluster.stop()


if __name__ == "__main__":
    sys.exit(main())
