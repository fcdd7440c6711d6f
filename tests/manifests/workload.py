# SPDX-License-Identifier: Apache-2.0
"""What a sample's objects say of each other, read from what the API server answers."""

import json

SCALABLE = ("Deployment", "StatefulSet", "LeaderWorkerSet")


class Sample:
    """The objects of one sample, by kind and name."""

    def __init__(self, name, objects):
        self.name = name
        self.objects = objects

    def all(self, kind):
        return [found for found in self.objects if found["kind"] == kind]

    def named(self, kind, name):
        return next((found for found in self.all(kind) if found["metadata"]["name"] == name), None)

    def workloads(self):
        return [found for kind in SCALABLE for found in self.all(kind)]

    def selected(self, labels):
        """The workloads whose pods have these labels."""
        return [w for w in self.workloads() if labels.items() <= pod_labels(w).items()]


def pod_labels(workload):
    return workload["spec"]["template"]["metadata"].get("labels", {})


def pod(workload):
    return workload["spec"]["template"]["spec"]


def server(workload):
    """The container that serves the model: the only one."""
    containers = pod(workload)["containers"]
    assert len(containers) == 1, f"{workload['metadata']['name']} has {len(containers)} containers"
    return containers[0]


def option(container, name):
    """The value of --name=value among a container's arguments; None when it is not given."""
    prefix = f"--{name}="
    return next((a[len(prefix) :] for a in container.get("args", []) if a.startswith(prefix)), None)


def connectors(container):
    """The KV connectors of a vLLM server, those inside a MultiConnector too."""
    config = json.loads(option(container, "kv-transfer-config") or "{}")
    inner = config.get("kv_connector_extra_config", {}).get("connectors", [])
    return [c["kv_connector"] for c in [config, *inner] if c]


def port_number(container, port):
    """A port given by number or by name."""
    if isinstance(port, int):
        return port
    return next(p["containerPort"] for p in container["ports"] if p["name"] == port)


def claims(spec):
    """Names of the PersistentVolumeClaims among a pod's volumes."""
    return {
        v["persistentVolumeClaim"]["claimName"]
        for v in spec.get("volumes", [])
        if "persistentVolumeClaim" in v
    }


def version(image):
    """The tag; empty for none, a digest counts as pinned."""
    return image.rpartition("/")[2].partition("@")[2] or image.rpartition("/")[2].partition(":")[2]
