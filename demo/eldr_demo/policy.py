# SPDX-License-Identifier: Apache-2.0
"""Reading an EldrPolicy as a person would: conditions, the active config, the progress of a calibration."""


class Policy:
    def __init__(self, kubectl, name):
        self.kubectl = kubectl
        self.name = name

    def read(self):
        return self.kubectl.get("eldrpolicy", self.name) or {}

    def status(self):
        return self.read().get("status", {})

    def patch(self, spec):
        self.kubectl.patch("eldrpolicy", self.name, {"spec": spec})

    def jobs(self):
        """Names of calibration Jobs that exist or existed: the operator's events name the deleted ones."""
        return sorted(
            job["metadata"]["name"] for job in self.kubectl.list("jobs", f"eldr.dev/policy={self.name}")
        )

    def wait_until(self, holds, deadline_s, console, what):
        """Waits until holds(policy) is true for the newest generation, printing what changes meanwhile."""

        def check():
            policy = self.read()
            if not policy:
                return None
            console.progress(describe(policy))
            settled = policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"]
            return policy if settled and holds(policy) else None

        found = self.kubectl.wait(check, deadline_s, what=what)
        console.claim(
            what, found is not None, "" if found else f"not within {deadline_s} s: {describe(self.read())}"
        )
        return found or self.read()


def condition(policy, kind):
    for entry in policy.get("status", {}).get("conditions", []):
        if entry["type"] == kind:
            return entry
    return {"status": "Missing", "reason": "", "message": ""}


def is_true(policy, kind):
    return condition(policy, kind)["status"] == "True"


def active(policy):
    return policy.get("status", {}).get("activeConfig", {})


def describe(policy):
    """One line: each condition, and how far a calibration is."""
    status = policy.get("status", {})
    marks = {"True": "+", "False": "-", "Unknown": "?"}
    conditions = " ".join(
        f"{marks.get(entry['status'], '?')}{entry['type']}"
        + (f"({entry['reason']})" if entry["status"] != "True" else "")
        for entry in status.get("conditions", [])
    )
    calibration = status.get("calibration", {})
    stage = " ".join(str(calibration[key]) for key in ("stage", "progress") if calibration.get(key))
    config = active(policy).get("name", "no config")
    return f"{config}  {conditions}" + (f"  [{stage}]" if stage else "")
