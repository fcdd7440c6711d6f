# SPDX-License-Identifier: Apache-2.0
"""The objects that the test applies: those of manifests/samples/qwen3-30b-a3b, fitted to CPUs and a tiny
model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from cluster import NAMESPACE, ROOT, Object

SAMPLE = ROOT / "manifests" / "samples" / "qwen3-30b-a3b"
IMAGE = "eldr.dev/host-files:dev"
MODEL_NAME = "tiny"
TRACES = "eldr-traces"
# Replaced by what is said in serve(): a GPU's memory and a big model's context do not fit here.
SAMPLE_ONLY = ("--model=", "--port=", "--max-model-len=", "--gpu-memory-utilization=")
HEALTH = {"httpGet": {"path": "/health", "port": 8000}}
PARTS = {
    "prefill": ("--num-gpu-blocks-override=300", "--max-num-batched-tokens=256"),
    "decode": ("--num-gpu-blocks-override=300",),
    "engine": ("--num-gpu-blocks-override=400",),
}


def sample(file: str, kind: str) -> Object:
    documents = yaml.safe_load_all((SAMPLE / file).read_text())
    found: Object = next(d for d in documents if d["kind"] == kind)
    found["metadata"]["namespace"] = NAMESPACE
    return found


class Host:
    """This machine's files as volumes of pods: Python, vLLM and the model need no image of their own."""

    def __init__(self, model: Path) -> None:
        self.python = Path(sys.prefix) / "bin" / "python"
        self.model = model
        folders = {
            Path("/usr"): Path("/usr"),
            Path("/lib"): Path("/usr/lib"),
            Path("/lib64"): Path("/usr/lib64"),
            Path("/bin"): Path("/usr/bin"),
        }
        # The environment, the Python that it was made from, this package (installed as a link), the model.
        for folder in (Path(sys.prefix), Path(sys.base_prefix), ROOT / "vllm", model):
            if not folder.is_relative_to("/usr"):
                folders[folder] = folder
        self._folders = folders

    def volumes(self) -> list[Object]:
        return [
            {"name": f"host-{number}", "hostPath": {"path": str(source), "type": "Directory"}}
            for number, source in enumerate(self._folders.values())
        ]

    def mounts(self) -> list[Object]:
        return [
            {"name": f"host-{number}", "mountPath": str(target), "readOnly": True}
            for number, target in enumerate(self._folders)
        ]

    def serve(self, part: str) -> Object:
        """Fields of a container that runs `vllm serve` on CPUs; its arguments follow those of `part`."""
        vllm = str(self.python.parent / "vllm")
        environment = {
            "HOME": "/tmp",
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "ELDR_CPU_POLITE": "1",
            "UCX_TLS": "tcp,self,sm",
            "UCX_NET_DEVICES": "eth0",
            "NO_COLOR": "1",
        }
        return {
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["nice", "-n", "5", vllm, "serve", str(self.model)],
            "args": [
                "--port=8000",
                f"--served-model-name={MODEL_NAME}",
                "--max-model-len=1024",
                "--dtype=float32",
                "--enforce-eager",
                *PARTS[part],
            ],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
        }

    def fit(self, container: Object, part: str) -> Object:
        """The container of a sample: its connectors, scheduler, probes, hooks, ports and rights stay."""
        here = self.serve(part)
        names = {variable["name"] for variable in here["env"]}
        return {
            **container,
            **here,
            "args": here["args"] + [a for a in container["args"] if not a.startswith(SAMPLE_ONLY)],
            "env": here["env"]
            + [v for v in container["env"] if v["name"] not in names and v["name"] != "HF_HOME"],
            "resources": {},
            "volumeMounts": self.mounts() + [m for m in container["volumeMounts"] if m["name"] != "models"],
        }


def workers(host: Host, part: str, replicas: int) -> Object:
    """The sample's Deployment of prefill or decode workers."""
    deployment = sample(f"{part}.yaml", "Deployment")
    deployment["spec"]["replicas"] = replicas
    pod = deployment["spec"]["template"]["spec"]
    pod["containers"] = [host.fit(container, part) for container in pod["containers"]]
    pod["volumes"] = host.volumes() + [v for v in pod["volumes"] if v["name"] != "models"]
    return deployment


def policy(host: Host, *, sample_size: int, answer_tokens: int) -> Object:
    """The sample's policy."""
    made = sample("policy.yaml", "EldrPolicy")
    spec: dict[str, Any] = made["spec"]
    spec["model"]["name"] = MODEL_NAME
    spec["dataset"].update(sampleSize=sample_size, decodeTokens=answer_tokens)
    calibration = spec["calibration"]
    engine = host.fit({**calibration["engine"]["job"]}, "engine")
    # The operator's own defaults: user 65532 without rights.
    for field in ("securityContext", "tolerations", "resources"):
        engine.pop(field, None)
    calibration["engine"]["job"] = {**engine, "volumes": host.volumes()}
    calibration.update(stabilizationSeconds=5, fit={})
    spec["router"] = {"replicas": 1, "drainSeconds": 30}
    return made


def single_server(host: Host) -> Object:
    """One vLLM that does all by itself: what the whole system's answers are compared with."""
    container = {
        "name": "vllm",
        **host.serve("engine"),
        "readinessProbe": {**HEALTH, "periodSeconds": 2, "timeoutSeconds": 5},
        "volumeMounts": [
            *host.mounts(),
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "single", "namespace": NAMESPACE, "labels": {"app": "single"}},
        "spec": {
            "containers": [container],
            "volumes": [
                *host.volumes(),
                {"name": "tmp", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
        },
    }


def namespace() -> Object:
    """Without a pod security level: files of the machine are mounted."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def prompts(text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prompts", "namespace": NAMESPACE},
        "data": {"prompts.jsonl": text},
    }


def trace_volume(folder: Path) -> tuple[Object, Object]:
    """A volume for the claim of the sample; the local cluster has no storage classes."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": TRACES},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }
    claims = yaml.safe_load_all((SAMPLE / "model-cache.yaml").read_text())
    claim: Object = next(d for d in claims if d["metadata"]["name"] == TRACES)
    claim["metadata"]["namespace"] = NAMESPACE
    claim["spec"].update(storageClassName="", volumeName=TRACES)
    return volume, claim
