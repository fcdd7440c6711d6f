# SPDX-License-Identifier: Apache-2.0
"""The demonstration's parts: a cluster, kubectl, traffic, and claims that must hold. Standard library only."""
