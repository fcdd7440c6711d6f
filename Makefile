# SPDX-License-Identifier: Apache-2.0
# Everything a person runs. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export KEEP

.PHONY: help setup build images test test-vllm test-unit test-integration test-e2e demo cluster-up cluster-down format check-format fuzz asan tsan install clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what this machine lacks (Debian packages, Go, a Python environment)
	@scripts/setup

build: setup ## compile all programs into build/bin
	@scripts/build

images: build ## make the container images in build/images
	@scripts/images

demo: images ## the whole loop on a local Kubernetes, told on the terminal (KEEP=1 leaves it running)
	@demo/run

test: setup ## all tests: format, unit, API server, end to end
	@scripts/test

test-unit: build ## only the unit tests
	@scripts/test unit

test-integration: build ## only the tests that need an API server
	@scripts/test integration

test-e2e: images ## only the end-to-end tests
	@scripts/test e2e

test-vllm: images ## all tests on real vLLM on CPU: counts of five models, the system as processes and as pods (20 to 40 minutes, 14 GB of memory)
	@vllm/tests/run all

cluster-up: images ## a local Kubernetes with the operator installed; prints its kubeconfig
	@demo/cluster up

cluster-down: ## stop that cluster and delete its state
	@demo/cluster down

format: setup ## format all sources
	@scripts/format fix

check-format: setup ## fail if a file is not formatted
	@scripts/format check

asan: setup ## unit tests under the address and undefined-behaviour sanitizers
	@scripts/sanitize asan

tsan: setup ## unit tests under the thread sanitizer
	@scripts/sanitize tsan

fuzz: setup ## build the fuzzers and run each for FUZZ_SECONDS (60)
	@scripts/fuzz

install: build ## install the programs below PREFIX (/usr/local)
	@cmake --install build --prefix "$${PREFIX:-/usr/local}"

clean: cluster-down ## delete everything that was built
	@rm -rf build
