"""Pictures of a report as a reader sees it, and a check that it keeps its promises.

At three widths, light and dark: no request but for the page itself, nothing in the console, nothing wider than the
window. Needs Chromium (`apt-get install chromium`).

    python docs/make_screenshots.py doxa-demo/report.html --out docs/images [--whole]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS = {360: 780, 800: 1000, 1400: 900}  # and the heights of what is seen first
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
WIDER = """(() => {
  const wide = document.documentElement.clientWidth;
  const clipped = e => e && (getComputedStyle(e).overflowX !== 'visible' || clipped(e.parentElement));
  return [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > wide + 1 && !e.closest('svg') && !clipped(e.parentElement))
    .map(e => e.tagName + '.' + e.className).slice(0, 5)
    .concat(document.documentElement.scrollWidth > wide ? ['the page'] : []);
})()"""


class Browser:
    """A headless Chromium, spoken to over a pair of pipes."""

    def __init__(self, commands: int, answers: int) -> None:
        self.commands, self.answers = commands, answers
        self.number, self.rest, self.events = 0, b"", list[dict[str, Any]]()
        self.session: str | None = None

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise RuntimeError("the browser has closed")
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\0")
        return json.loads(line)


@contextmanager
def browser() -> Iterator[Browser]:
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        sys.exit("no Chromium is installed: apt-get install chromium")
    (reads, commands), (answers, writes) = os.pipe(), os.pipe()

    def connect_pipes() -> None:
        # Chromium reads commands from 3 and answers on 4.
        descriptors = os.dup(reads), os.dup(writes)
        os.dup2(descriptors[0], 3)
        os.dup2(descriptors[1], 4)

    # Its helpers may still write there when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect_pipes,
            close_fds=False,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        try:
            yield Browser(commands, answers)
        finally:
            process.terminate()
            process.wait()


def look(page: Path, folder: Path, whole: bool) -> list[str]:
    """Write the pictures; what is wrong comes back in words."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = []
    with browser() as chromium:
        target = chromium.ask("Target.createTarget", url="about:blank")["targetId"]
        chromium.session = chromium.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            chromium.ask(f"{domain}.enable")
        for width, height in WIDTHS.items():
            for scheme in ("light", "dark"):
                view = f"{width} px, {scheme}"
                chromium.events.clear()
                chromium.ask(
                    "Emulation.setDeviceMetricsOverride",
                    width=width,
                    height=height,
                    deviceScaleFactor=1,
                    mobile=width < 500,
                )
                chromium.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                chromium.ask("Page.navigate", url=page.resolve().as_uri())
                chromium.wait("Page.loadEventFired")
                wider = chromium.ask("Runtime.evaluate", expression=WIDER, returnByValue=True)["result"]["value"]
                problems += [f"{view}: wider than the window: {what}" for what in wider]
                picture = chromium.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
                name = f"report-{width}-{scheme}{'-whole' if whole else ''}.png"
                (folder / name).write_bytes(base64.b64decode(picture))
                problems += [f"{view}: {what}" for what in _complaints(chromium.events, page.resolve().as_uri())]
    return problems


def _complaints(events: list[dict[str, Any]], page_url: str) -> list[str]:
    complaints = []
    for event in events:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != page_url and not url.startswith("data:"):
                complaints.append(f"asked for {url}")
        elif event.get("method") == "Log.entryAdded":
            complaints.append(params["entry"]["text"])
        elif event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            complaints.append(f"the console says {json.dumps(params)[:200]}")
    return complaints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--whole", action="store_true", help="the page from top to bottom, not what is seen first")
    args = parser.parse_args()
    problems = look(args.page, args.out, args.whole)
    print("\n".join(problems) or f"no request, no complaint, nothing too wide; pictures in {args.out}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
