#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the images from their container files and looks into them: build_test.py [--images NAME,...] [unittest options].

NAME is operator, router, calibrate (the default: these three), calibrate-cuda (downloads 0.6 GB) or vllm-prefill. Needs buildah,
debootstrap and root, but no registry: stand-ins of the base images are made here, Debian's by debootstrap, vLLM's from the environment
of vllm/tests/setup-vllm.sh. Objects that ccache has are not compiled again. ELDR_CONTAINER_STATE: folder of the image store.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import total  # noqa: E402
from containers.containerfile import ROOT, parse  # noqa: E402

PROGRAMS = ROOT / "containers" / "Containerfile"
PREFILL = ROOT / "vllm" / "Containerfile"
STATE = Path(os.environ.get("ELDR_CONTAINER_STATE", ROOT / "build" / "containers"))
IMAGES = ["operator", "router", "calibrate"]
LARGEST_MB = {"operator": 40, "router": 40, "calibrate": 40, "calibrate-cuda": 900}


def run(*command, timeout=120, check=True, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout, **options)
    if check:
        expect_success(done)
    return done


def expect_success(done):
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(done.args)}:\n{(done.stdout + done.stderr)[-4000:]}")


def buildah(*arguments, check=True, **options):
    """buildah starts itself from a sealed copy in memory. The kernel refuses to seal while pages of the copy are still in use, and buildah
    gives up; so it is asked again."""
    store = ["--root", STATE / "storage", "--runroot", STATE / "run"]
    for pause_s in (1, 2, 4, 8):
        done = run("buildah", *store, *arguments, check=False, **options)
        if done.returncode == 0 or "sealing memfd copy" not in done.stderr:
            break
        print(f"buildah could not seal the copy of itself; again in {pause_s} s", file=sys.stderr, flush=True)
        time.sleep(pause_s)
    if check:
        expect_success(done)
    return done


def have(image):
    return buildah("inspect", "--type", "image", image, check=False).returncode == 0


def build(image, file, context, *options, target=None):
    print(f"building {image}", file=sys.stderr, flush=True)
    if target:
        options += ("--target", target)
    # Of the network only what package managers need; --layers: stages in common are built once.
    return buildah(
        "bud", "--isolation=chroot", "--pull-never", "--layers", "--timestamp=0", "--file", file, "--tag", image, *options, context,
        timeout=3000,
    )  # fmt: skip


def make_debian(image):
    """The packages of Debian's own slim image, from Debian's archive."""
    if have(image):
        return
    folder = STATE / "debian"
    shutil.rmtree(folder, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "bookworm", folder, timeout=900)
    shutil.rmtree(folder / "var" / "cache" / "apt" / "archives")
    run("tar", "-C", folder, "-cf", STATE / "debian.tar", ".", timeout=300)
    shutil.rmtree(folder)
    file = STATE / "Containerfile.debian"
    file.write_text("FROM scratch\nADD debian.tar /\n")
    build(image, file, STATE)
    (STATE / "debian.tar").unlink()


def compiler_cache():
    """Lends this machine's ccache to the build: same compiler, same sources, so what was compiled is there."""
    if not shutil.which("ccache"):
        return []
    folder = run("ccache", "-k", "cache_dir").stdout.strip()
    os.makedirs(folder, exist_ok=True)
    return ["--volume", f"{folder}:/ccache"]


def package_index():
    """Lends this machine's certificates to pip in a build, where its index needs them. Nothing of that stays in the image."""
    bundle = os.environ.get("PIP_CERT")
    if not bundle:
        return []
    config = STATE / "pip.conf"
    config.write_text("[global]\ncert = /etc/pip-ca.crt\n")
    return ["--volume", f"{bundle}:/etc/pip-ca.crt:ro", "--volume", f"{config}:/etc/pip.conf:ro"]


class Image:
    """A built image, with its files mounted."""

    def __init__(self, name):
        inspected = json.loads(buildah("inspect", "--type", "image", name).stdout)
        self.config = inspected["OCIv1"]["config"]
        self.container = buildah("from", "--pull-never", name).stdout.strip()
        self.root = Path(buildah("mount", self.container).stdout.strip())

    def run(self, *command):
        return buildah("run", "--isolation=chroot", self.container, *command, timeout=60, check=False)

    def files(self):
        return [p for p in self.root.rglob("*") if p.is_file() and not p.is_symlink()]

    def close(self):
        buildah("rm", self.container)


class ImageTest:
    """What holds for every image of a program."""

    image_name = ""
    program = ""

    @classmethod
    def setUpClass(cls):
        if cls.image_name not in IMAGES:
            raise unittest.SkipTest(f"not asked for (--images={cls.image_name})")
        for tool in ("buildah", "debootstrap"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"needs {tool}")
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root")
        STATE.mkdir(parents=True, exist_ok=True)
        cls.build()
        cls.image = Image(f"eldr.dev/{cls.image_name}:test")
        cls.addClassCleanup(cls.image.close)

    @classmethod
    def build(cls):
        make_debian(parse(PROGRAMS)[0].base)
        lent = [*compiler_cache(), *package_index()]
        build(
            f"eldr.dev/{cls.image_name}:test",
            PROGRAMS,
            ROOT,
            *lent,
            "--label=org.opencontainers.image.revision=abc123",
            target=cls.image_name,
        )

    def test_the_program_starts(self):
        for option in ("--version", "--help"):
            done = self.image.run(f"/usr/bin/{self.program}", option)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(self.program, done.stdout)
        self.assertEqual(self.image.config["Entrypoint"], [f"/usr/bin/{self.program}"])

    def test_it_has_the_program_and_no_shell(self):
        programs = [p.name for p in (self.image.root / "usr" / "bin").iterdir()]
        self.assertEqual(programs, [self.program])
        self.assertNotEqual(self.image.run("sh", "-c", "true").returncode, 0)

    def test_it_runs_as_a_user_without_rights(self):
        self.assertEqual(self.image.config["User"], "65532:65532")
        self.assertIn("nonroot:x:65532:65532:", (self.image.root / "etc" / "passwd").read_text())
        for file in self.image.files():
            mode = file.stat().st_mode
            self.assertEqual(mode & 0o6002, 0, f"{file} may be changed by anyone or runs as somebody else")

    def test_it_is_small(self):
        size = sum(file.stat().st_size for file in self.image.files()) / 1e6
        self.assertLess(size, LARGEST_MB[self.image_name])
        print(f"{self.image_name}: {size:.1f} MB", file=sys.stderr)

    def test_scanners_find_the_packages(self):
        records = {p.name for p in (self.image.root / "var" / "lib" / "dpkg" / "status.d").iterdir()}
        self.assertLessEqual({"libc6", "libstdc++6", "libssl3", "ca-certificates"}, records)
        for package in records:
            self.assertTrue((self.image.root / "usr" / "share" / "doc" / package / "copyright").is_file())

    def test_it_is_labelled(self):
        labels = {k.rpartition(".")[2]: v for k, v in self.image.config["Labels"].items()}
        self.assertEqual(labels["licenses"], "Apache-2.0")
        self.assertEqual(labels["revision"], "abc123")
        self.assertRegex(labels["version"], r"^\d+\.\d+\.\d+$")

    def test_it_trusts_public_certificate_authorities(self):
        bundle = self.image.root / "etc" / "ssl" / "certs" / "ca-certificates.crt"
        self.assertGreater(bundle.read_text().count("BEGIN CERTIFICATE"), 50)


class OperatorTest(ImageTest, unittest.TestCase):
    image_name, program = "operator", "eldr-operator"


class RouterTest(ImageTest, unittest.TestCase):
    image_name, program = "router", "eldr-router"


class CalibrateTest(ImageTest, unittest.TestCase):
    image_name, program = "calibrate", "eldr-calibrate"


class CalibrateCudaTest(ImageTest, unittest.TestCase):
    image_name, program = "calibrate-cuda", "eldr-calibrate"

    def test_the_backend_loads_all_its_libraries(self):
        """Without a driver it has to fail at looking for a device, after everything was loaded."""
        loader = self.image.run(
            "/usr/lib64/ld-linux-x86-64.so.2", "--list", "/usr/lib/eldr/libeldr_calibrate_cuda.so"
        )
        self.assertEqual(loader.returncode, 0, loader.stderr)
        self.assertIn("libcublas.so", loader.stdout)
        self.assertNotIn("not found", loader.stdout)


class PrefillTest(unittest.TestCase):
    """vllm/Containerfile, on a stand-in for vLLM's image: Debian's Python with the vLLM of the test environment."""

    @classmethod
    def setUpClass(cls):
        if "vllm-prefill" not in IMAGES:
            raise unittest.SkipTest("not asked for (--images=vllm-prefill)")
        found = run(ROOT / "vllm" / "tests" / "setup-vllm.sh", "--check", check=False)
        if found.returncode != 0:
            raise unittest.SkipTest(found.stderr.strip())
        (site,) = Path(found.stdout.strip()).parent.parent.glob("lib/python3*/site-packages")
        debian, stand_in = parse(PROGRAMS)[0].base, parse(PREFILL)[0].base
        make_debian(debian)
        file = STATE / "Containerfile.vllm"
        file.write_text(
            f"FROM {debian}\n"
            "RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-pip python3-venv g++ && "
            "rm /usr/lib/python3*/EXTERNALLY-MANAGED && "
            "echo /opt/vllm >$(python3 -c 'import site; print(site.getsitepackages()[0])')/vllm.pth\n"
        )
        build(stand_in, file, STATE)
        # O: what pip changes there, where this package is installed as a link, goes into an overlay.
        mounted = ["--volume", f"{site}:/opt/vllm:O"]
        build("eldr.dev/vllm-prefill:test", PREFILL, ROOT / "vllm", *mounted, *package_index())
        cls.image = Image("eldr.dev/vllm-prefill:test")
        cls.addClassCleanup(cls.image.close)

    def test_the_package_is_installed_with_its_kernel(self):
        (package,) = self.image.root.glob("usr/local/lib/python3*/dist-packages/eldr_vllm")
        kernel = package / "libeldr_scatter.so"
        self.assertGreater(kernel.stat().st_size, 10_000)
        self.assertTrue((package / "py.typed").exists())

    def test_nothing_of_the_build_stays(self):
        for path in ("src", "out", "wheel", "opt/nvcc"):
            self.assertFalse(
                (self.image.root / path).exists() and any((self.image.root / path).iterdir()), path
            )

    def test_it_runs_as_a_user_without_rights(self):
        self.assertEqual(self.image.config["User"], "65532:65532")
        done = self.image.run(
            "python3", "-c", "import getpass, os; print(getpass.getuser(), os.path.expanduser('~'))"
        )
        self.assertEqual(done.stdout.split(), ["nonroot", "/tmp"], done.stderr)


def tearDownModule():
    """A build that failed leaves its containers mounted, and build/ could not be deleted."""
    if (STATE / "storage").exists() and shutil.which("buildah"):
        buildah("rm", "--all", check=False)


def take_images(arguments):
    """Removes --images from the command line and returns its names."""
    for index, argument in enumerate(arguments):
        if found := re.fullmatch(r"--images=(.*)", argument):
            del arguments[index]
            return found.group(1).split(",")
    return IMAGES


if __name__ == "__main__":
    IMAGES = take_images(sys.argv)
    sys.exit(total.run())
