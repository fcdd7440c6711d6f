#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens reports in headless Chromium, at the width of a phone and of a wide screen, in light and dark.

Usage: browser_test.py PROGRAM [--keep FOLDER]    PROGRAM is eldr-calibrate; FOLDER keeps pages and pictures

Checks that the page runs no script and asks the network for nothing, that the console stays silent, that every chart has
the marks that its numbers ask for, that nothing is wider than the screen, and that no two texts of a chart touch.
Exit code 77, with the reason, where there is no Chromium.
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from array import array
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
NARROW, WIDE = 400, 1400
HOSTILE = "<script>document.title = 'owned'</script>"

# Runs beside the report, not in it: the page's own policy forbids scripts.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" src="%(page)s" style="border:0;width:%(width)dpx;height:6000px"></iframe><pre id="result"></pre>
<script>
const touching = (a, b) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
function chart(svg) {
  const count = (selector) => svg.querySelectorAll(selector).length;
  const texts = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect();
  const overlaps = [];
  texts.forEach(([a, boxA], i) => texts.slice(i + 1).forEach(([b, boxB]) => {
    if (touching(boxA, boxB)) overlaps.push(a + ' | ' + b);
  }));
  return {
    width: frame.width, height: frame.height, overlaps: overlaps,
    outside: texts.filter(([, box]) => box.left < frame.left - 1.5 || box.right > frame.right + 1.5).map(([text]) => text),
    smallest: Math.min(...texts.map(([, box]) => box.height)),
    named: Boolean(svg.querySelector(':scope > title') && svg.querySelector(':scope > desc')),
    dots: count('.dot'), cells: count('.cell'), bars: count('.bar'), badges: count('.badge'), points: count('.points circle'),
    chosen: count('line.chosen'), capacity: count('.capacity'), nearest: count('line.nearest'), heldOut: count('.held-out'),
  };
}
document.getElementById('page').addEventListener('load', (event) => {
  const view = event.target.contentWindow, page = view.document;
  const inScroller = (element) => element.closest('.table') || element.closest('.wide .plot');
  const result = {
    title: page.title, scripts: page.scripts.length, scrollWidth: page.scrollingElement.scrollWidth,
    requests: view.performance.getEntriesByType('resource').map((entry) => entry.name),
    tooWide: [...page.querySelectorAll('body *')].filter((element) => !inScroller(element) && !element.closest('svg') &&
      element.getBoundingClientRect().right > %(width)d + 0.5).map((element) => element.tagName + '.' + element.className),
    ground: view.getComputedStyle(page.body).backgroundColor, ink: view.getComputedStyle(page.body).color,
    tables: page.querySelectorAll('table').length,
    charts: Object.fromEntries([...page.querySelectorAll('svg')].map((svg) => [svg.id, chart(svg)])),
  };
  document.getElementById('result').textContent = JSON.stringify(result);
});
</script>"""


def find_browser():
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def write_trace(path, requests, layers, experts, top_k, labels, seed):
    """A trace of so many labels, each with experts that it prefers."""
    draw = random.Random(seed)
    taste = [[draw.sample(range(experts), top_k * 2) for _ in range(layers)] for _ in labels or [""]]
    prompt, decode = 24, 12

    def counts(tokens):
        table = array("I", bytes(4 * requests * layers * experts))
        for request in range(requests):
            for layer in range(layers):
                preferred = taste[request % len(taste)][layer]
                row = (request * layers + layer) * experts
                for _ in range(tokens):
                    chosen = set(draw.sample(preferred, top_k - 1))
                    while len(chosen) < top_k:
                        chosen.add(draw.randrange(experts))
                    for expert in chosen:
                        table[row + expert] += 1
        return table

    tensors = {
        "prefill_counts": (counts(prompt), [requests, layers, experts]),
        "decode_counts": (counts(decode), [requests, layers, experts]),
        "prompt_tokens": (array("I", [prompt] * requests), [requests]),
        "decode_tokens": (array("I", [decode] * requests), [requests]),
    }
    header, offset = {}, 0
    for name, (values, shape) in tensors.items():
        end = offset + 4 * len(values)
        header[name] = {"dtype": "U32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    header["__metadata__"] = {
        "format": "eldr-trace/1",
        "model": "browser/" + HOSTILE,
        "layers": json.dumps(list(range(layers))),
        "experts": str(experts),
        "top_k": str(top_k),
    }
    if labels:
        names = [labels[request % len(labels)] for request in range(requests)]
        header["__metadata__"]["labels"] = json.dumps(names)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values, _ in tensors.values():
            values.tofile(file)


class Reports(unittest.TestCase):
    program = None
    browser = None
    folder = None

    @classmethod
    def setUpClass(cls):
        few = ["code", HOSTILE, "", "Verträge und Nebenabreden in deutscher Sprache", "医学"]
        many = [f"label {number} of a long list" for number in range(100)]
        cls.pages = {
            "small": cls.report("small", (60, 5, 16, 3, few), 3),
            "middle": cls.report("middle", (160, 4, 32, 4, few), 16),
            "large": cls.report("large", (600, 3, 64, 4, many), 256),
            "bare": cls.report("bare", (40, 3, 16, 2, []), 1),
        }

    @classmethod
    def report(cls, name, trace, clusters):
        paths = {kind: cls.folder / f"{name}.{kind}" for kind in ("trace", "centroids", "html")}
        write_trace(paths["trace"], *trace, seed=1)
        fit = [
            cls.program,
            "fit",
            "--trace",
            paths["trace"],
            "--clusters",
            str(clusters),
            "--out",
            paths["centroids"],
        ]
        subprocess.run(fit, check=True, timeout=120, capture_output=True)
        files = ["--trace", paths["trace"], "--centroids", paths["centroids"]]
        report = subprocess.run(
            [cls.program, "report", *files, "--out", paths["html"], "--json"],
            check=True,
            timeout=120,
            capture_output=True,
        )
        return paths["html"], json.loads(report.stdout)

    def chromium(self, *arguments):
        with tempfile.TemporaryDirectory() as profile:
            command = [
                self.browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--enable-logging=stderr",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                f"--user-data-dir={profile}",
                *arguments,
            ]
            return subprocess.run(command, timeout=120, capture_output=True, text=True)

    def probe(self, name, width, dark=False):
        """What the browser made of a page."""
        page, _ = self.pages[name]
        probe = self.folder / f"probe-{name}-{width}.html"
        probe.write_text(PROBE % {"page": page.name, "width": width}, encoding="utf-8")
        ended = self.chromium(
            "--allow-file-access-from-files",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={max(width, 600)},6000",
            "--virtual-time-budget=20000",
            "--dump-dom",
            probe.as_uri(),
        )
        console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [])
        text = ended.stdout.partition('<pre id="result">')[2].partition("</pre>")[0]
        self.assertTrue(text, f"the browser showed nothing: {ended.stderr[-2000:]}")
        return json.loads(ElementTree.fromstring(f"<pre>{text}</pre>").text)

    def expect_tidy(self, name, width):
        seen = self.probe(name, width)
        with self.subTest(page=name, width=width):
            self.assertEqual(seen["scripts"], 0)
            self.assertEqual(seen["requests"], [])
            self.assertEqual(seen["title"], f"Calibration of browser/{HOSTILE}")
            self.assertLessEqual(seen["scrollWidth"], width)
            self.assertEqual(seen["tooWide"], [])
            for chart, facts in seen["charts"].items():
                self.assertEqual(facts["overlaps"], [], f"{chart}: texts touch")
                self.assertEqual(facts["outside"], [], f"{chart}: texts leave the picture")
                self.assertGreater(facts["smallest"], 8, f"{chart}: text too small to read")
                self.assertTrue(facts["named"], f"{chart}: no title or description")
                self.assertGreater(facts["width"], 0.7 * min(width, 600) - 60, chart)
        return seen

    def expect_marks(self, name):
        charts = self.expect_tidy(name, WIDE)["charts"]
        _, numbers = self.pages[name]
        clusters, labels = numbers["clusters"], len(numbers["byLabel"]["labels"])
        self.assertEqual(charts["chart-rho"]["dots"], numbers["modelLayers"])
        self.assertEqual(charts["chart-rho"]["chosen"], 1)
        self.assertEqual(charts["chart-rho"]["heldOut"], 1)
        self.assertEqual(charts["chart-experts"]["dots"], 2 * len(numbers["distinctExperts"]))
        self.assertEqual(charts["chart-similarity"]["cells"], labels * clusters)
        self.assertEqual(charts["chart-cluster-sizes"]["bars"], clusters)
        self.assertEqual(charts["chart-cluster-sizes"]["nearest"], clusters)
        self.assertEqual(charts["chart-cluster-sizes"]["capacity"], 1)
        self.assertEqual(charts["chart-cluster-map"]["points"], min(len(numbers["map"]["requests"]), 1500))
        self.assertEqual(charts["chart-cluster-map"]["badges"], clusters if clusters <= 32 else 0)
        self.assertEqual(charts["chart-tau"]["chosen"], 1)
        widths = numbers["band"]["requestsByWidth"]
        widest = max(width for width, requests in enumerate(widths, 1) if requests > 0)
        self.assertEqual(charts["chart-band"]["bars"], clusters if clusters <= 20 else max(20, widest))
        return charts

    def test_a_usual_report(self):
        charts = self.expect_marks("small")
        self.assertEqual(charts["chart-label-counts"]["cells"], 5 * 3)
        self.assertEqual(charts["chart-label-map"]["points"], 60)
        self.assertEqual(len(charts), 9)

    def test_a_usual_report_on_a_phone(self):
        self.assertEqual(len(self.expect_tidy("small", NARROW)["charts"]), 9)

    def test_sixteen_clusters(self):
        self.expect_marks("middle")
        self.expect_tidy("middle", NARROW)

    def test_many_clusters_and_labels(self):
        charts = self.expect_marks("large")
        self.assertEqual(charts["chart-label-counts"]["cells"], 24 * 256)
        self.expect_tidy("large", NARROW)
        self.assertLess(self.pages["large"][0].stat().st_size, 2_000_000)

    def test_one_cluster_without_labels(self):
        charts = self.expect_marks("bare")
        self.assertNotIn("chart-label-map", charts)
        self.expect_tidy("bare", NARROW)

    def test_light_and_dark(self):
        def brightness(colour):
            return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])

        light, dark = self.probe("small", WIDE), self.probe("small", WIDE, dark=True)
        self.assertGreater(brightness(light["ground"]), brightness(light["ink"]) + 400)
        self.assertGreater(brightness(dark["ink"]), brightness(dark["ground"]) + 400)

    def test_pictures_are_well_formed(self):
        for name, (path, _) in self.pages.items():
            for markup in path.read_text(encoding="utf-8").split("<svg ")[1:]:
                ElementTree.fromstring("<svg " + markup[: markup.index("</svg>")] + "</svg>")
            self.assertIn("</html>", path.read_text(encoding="utf-8"), name)

    def test_a_screenshot_can_be_taken(self):
        for width in (NARROW, WIDE):
            picture = self.folder / f"small-{width}.png"
            self.chromium(
                f"--window-size={width},1200", f"--screenshot={picture}", self.pages["small"][0].as_uri()
            )
            head = picture.read_bytes()[:24]
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(struct.unpack(">I", head[20:24])[0], 1200)
            self.assertGreater(picture.stat().st_size, 30_000, "an empty page?")


def main():
    if len(sys.argv) not in (2, 4) or (len(sys.argv) == 4 and sys.argv[2] != "--keep"):
        print(__doc__, file=sys.stderr)
        return 64
    Reports.browser = find_browser()
    if Reports.browser is None:
        print(
            f"SKIPPED: no browser: none of {', '.join(BROWSERS)} is installed (scripts/setup installs chromium)"
        )
        return 77
    Reports.program = Path(sys.argv[1]).resolve()
    os.environ.setdefault("HOME", tempfile.gettempdir())
    with tempfile.TemporaryDirectory() as folder:
        Reports.folder = Path(sys.argv[3] if len(sys.argv) == 4 else folder).resolve()
        Reports.folder.mkdir(parents=True, exist_ok=True)
        result = unittest.TextTestRunner(verbosity=2).run(
            unittest.defaultTestLoader.loadTestsFromTestCase(Reports)
        )
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
