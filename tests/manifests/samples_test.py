#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/: a real API server accepts every file, and the objects of a sample fit each other."""

import functools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import total  # noqa: E402
from manifests import workload as w  # noqa: E402
from manifests.api import MANIFESTS, ApiTest, accepted  # noqa: E402

SAMPLES = MANIFESTS / "samples"
GPU_CLUSTER = SAMPLES / "qwen3-30b-a3b"
NAMESPACE = "serving"
# What a sample leaves to its reader, as its comments say.
OWN = {"prompts", "eldr-traces", "hf-token"}


class InstallationTest(ApiTest):
    def test_base_and_overlays(self):
        folders = sorted(p.parent for p in MANIFESTS.glob("overlays/*/kustomization.yaml"))
        self.assertGreaterEqual(len(folders), 2)
        for folder in [MANIFESTS / "base", *folders]:
            with self.subTest(folder=folder.name):
                kinds = [found["kind"] for found in accepted(folder)]
                for kind in ("CustomResourceDefinition", "Deployment", "ServiceAccount", "NetworkPolicy"):
                    self.assertIn(kind, kinds)

    def test_every_file_of_a_folder_is_in_its_kustomization(self):
        for folder in sorted(p.parent for p in MANIFESTS.rglob("kustomization.yaml")):
            text = (folder / "kustomization.yaml").read_text()
            for file in folder.glob("*.yaml"):
                # The horizontal autoscaler is optional, and its comment says what it needs.
                if file.name not in ("kustomization.yaml", "autoscaling.yaml"):
                    self.assertIn(f"- {file.name}", text, f"{file} is in no kustomization")


def for_each_sample(check):
    """Calls check(self, sample, spec of its policy) for every sample, each as a sub-test."""

    @functools.wraps(check)
    def test(self):
        for sample in self.samples:
            with self.subTest(sample=sample.name):
                (policy,) = sample.all("EldrPolicy")
                check(self, sample, policy["spec"])

    return test


class SamplesTest(ApiTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        workers = accepted(SAMPLES / "workers.yaml", NAMESPACE)
        cls.samples = [
            w.Sample(file.name, workers + accepted(file, NAMESPACE))
            for file in sorted(SAMPLES.glob("policy-*.yaml"))
        ]
        autoscaling = accepted(GPU_CLUSTER / "autoscaling.yaml", NAMESPACE)
        cls.samples.append(w.Sample(GPU_CLUSTER.name, accepted(GPU_CLUSTER) + autoscaling))

    def prefill_workload(self, sample, spec):
        found = sample.selected(spec["prefill"]["selector"]["matchLabels"])
        self.assertEqual([f["metadata"]["name"] for f in found], ["prefill"])
        return found[0]

    def decode_workload(self, sample, spec):
        target = spec["decode"]["scaleTargetRef"]
        found = sample.named(target["kind"], target["name"])
        self.assertIsNotNone(found, f"scaleTargetRef names {target}, which is not in the sample")
        self.assertEqual(found["apiVersion"], target["apiVersion"])
        return found

    def test_there_is_one_of_each_kind_of_source(self):
        self.assertEqual(
            [sample.name for sample in self.samples],
            ["policy-engine-job.yaml", "policy-engine-service.yaml", "policy-trace.yaml", "qwen3-30b-a3b"],
        )

    @for_each_sample
    def test_the_policy_finds_its_pools(self, sample, spec):
        prefill, decode = self.prefill_workload(sample, spec), self.decode_workload(sample, spec)
        self.assertIsNot(prefill, decode)
        self.assertNotIn(decode, sample.selected(spec["prefill"]["selector"]["matchLabels"]))
        for pool, port in ((prefill, spec["prefill"]["port"]), (decode, spec["decode"]["port"])):
            container = w.server(pool)
            self.assertEqual(int(w.option(container, "port")), port)
            self.assertIn(port, [p["containerPort"] for p in container["ports"]])

    @for_each_sample
    def test_every_pool_serves_the_policy_s_model(self, sample, spec):
        servers = [w.server(pool) for pool in sample.workloads()]
        engine = spec["calibration"].get("engine", {}).get("job")
        for container in [*servers, *([engine] if engine else [])]:
            self.assertEqual(w.option(container, "model"), spec["model"]["name"])

    @for_each_sample
    def test_prefill_workers_count_experts_and_decode_workers_are_stock(self, sample, spec):
        prefill = w.server(self.prefill_workload(sample, spec))
        decode = w.server(self.decode_workload(sample, spec))
        self.assertEqual(w.connectors(prefill), ["MultiConnector", "NixlConnector", "EldrConnector"])
        self.assertEqual(w.option(prefill, "scheduler-cls"), "eldr_vllm.scheduler.EldrScheduler")
        self.assertEqual(w.connectors(decode), ["NixlConnector"])
        self.assertIsNone(w.option(decode, "scheduler-cls"))
        for container in (prefill, decode):
            host = next(e for e in container["env"] if e["name"] == "VLLM_NIXL_SIDE_CHANNEL_HOST")
            self.assertEqual(host["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP")

    @for_each_sample
    def test_an_engine_returns_experts_and_has_no_connector(self, _, spec):
        engine = spec["calibration"].get("engine", {}).get("job")
        if engine:
            self.assertIn("--enable-return-routed-experts", engine["args"])
            self.assertEqual(w.connectors(engine), [])

    @for_each_sample
    def test_images_are_pinned_and_of_one_version_of_vllm(self, sample, spec):
        images = [w.server(pool)["image"] for pool in sample.workloads()]
        images += [c["image"] for job in sample.all("Job") for c in w.pod(job)["containers"]]
        if "job" in spec["calibration"].get("engine", {}):
            images.append(spec["calibration"]["engine"]["job"]["image"])
        versions = {w.version(image) for image in images}
        self.assertEqual(len(versions), 1, images)
        self.assertRegex(versions.pop(), r"^v\d+\.\d+\.\d+$")

    @for_each_sample
    def test_probes_ask_the_port_that_vllm_listens_on(self, sample, _):
        for pool in sample.workloads():
            container = w.server(pool)
            probes = [
                container[p] for p in ("startupProbe", "readinessProbe", "livenessProbe") if p in container
            ]
            self.assertGreaterEqual(len(probes), 2, pool["metadata"]["name"])
            for probe in probes:
                self.assertEqual(probe["httpGet"]["path"], "/health")
                self.assertEqual(
                    w.port_number(container, probe["httpGet"]["port"]), int(w.option(container, "port"))
                )

    @for_each_sample
    def test_every_pool_asks_for_gpus(self, sample, _):
        for pool in sample.workloads():
            self.assertGreaterEqual(
                int(w.server(pool)["resources"]["limits"]["nvidia.com/gpu"]), 1, pool["metadata"]["name"]
            )

    @for_each_sample
    def test_what_is_named_is_there(self, sample, spec):
        made = {
            c["metadata"]["name"] for kind in ("PersistentVolumeClaim", "ConfigMap") for c in sample.all(kind)
        }
        wanted = set()
        for owner in [*sample.workloads(), *sample.all("Job")]:
            wanted |= w.claims(w.pod(owner))
        wanted |= w.claims(spec["calibration"].get("engine", {}).get("job", {}))
        for source in ("configMap", "persistentVolumeClaim", "trace"):
            named = spec["dataset"].get(source, {})
            wanted |= {named.get("name"), named.get("claimName")} - {None}
        cache = spec["calibration"].get("cache", {}).get("persistentVolumeClaim", {})
        wanted |= {cache.get("claimName")} - {None}
        self.assertLessEqual(wanted - made, OWN)

    @for_each_sample
    def test_mounts_have_volumes(self, sample, _):
        for owner in [*sample.workloads(), *sample.all("Job")]:
            volumes = {v["name"] for v in w.pod(owner).get("volumes", [])}
            for container in w.pod(owner)["containers"]:
                mounts = {m["name"] for m in container.get("volumeMounts", [])}
                self.assertEqual(mounts, volumes, owner["metadata"]["name"])


class GpuClusterTest(ApiTest):
    """qwen3-30b-a3b: eight prefill and sixteen decode workers, to be run in earnest."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sample = w.Sample(GPU_CLUSTER.name, accepted(GPU_CLUSTER))

    def pool(self, name):
        return self.sample.named("Deployment", name)

    def test_the_pools_have_the_sizes_of_its_comment(self):
        gpus = {
            name: self.pool(name)["spec"]["replicas"]
            * int(w.server(self.pool(name))["resources"]["limits"]["nvidia.com/gpu"])
            for name in ("prefill", "decode")
        }
        self.assertEqual(gpus, {"prefill": 8, "decode": 16})

    def test_a_disruption_budget_covers_each_pool_and_nothing_else(self):
        for budget in self.sample.all("PodDisruptionBudget"):
            covered = self.sample.selected(budget["spec"]["selector"]["matchLabels"])
            self.assertEqual([c["metadata"]["name"] for c in covered], [budget["metadata"]["name"]])
        self.assertEqual(len(self.sample.all("PodDisruptionBudget")), 2)

    def test_everything_is_in_the_namespace(self):
        for found in self.sample.objects:
            if found["kind"] != "Namespace":
                self.assertEqual(found["metadata"].get("namespace"), NAMESPACE, found["metadata"]["name"])

    def test_a_pod_that_ends_has_the_time_its_hook_takes(self):
        for name, needed in (("prefill", 40), ("decode", 5 + 150 * 2)):
            self.assertGreater(w.pod(self.pool(name))["terminationGracePeriodSeconds"], needed + 20)

    def test_a_roll_out_needs_no_spare_gpu(self):
        for name in ("prefill", "decode"):
            self.assertEqual(self.pool(name)["spec"]["strategy"]["rollingUpdate"]["maxSurge"], 0)

    def test_the_autoscaler_scales_the_decode_pool(self):
        (scaler,) = accepted(GPU_CLUSTER / "autoscaling.yaml", NAMESPACE)
        policy = self.sample.all("EldrPolicy")[0]["spec"]
        self.assertEqual(scaler["spec"]["scaleTargetRef"], policy["decode"]["scaleTargetRef"])
        # Two masters of one number would undo each other's work.
        self.assertNotIn("replicas", policy["decode"])


if __name__ == "__main__":
    sys.exit(total.run())
