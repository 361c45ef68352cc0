"""A check that the built site keeps its promises, page by page, as a reader sees it.

On a phone and on a desk, light and dark: no request but for the site's own files, nothing in the console, nothing wider
than the window, and a search that finds. Needs Chromium (`apt-get install chromium`) and a built site (`make docs`).

    python docs/check_site.py site [--pictures FOLDER [--whole]] [--only concepts]
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from pathlib import Path

from make_screenshots import WIDER, Browser, browser

SIZES = {360: 780, 1280: 900}
SEARCHED = "flipout"
RESULTS = "document.querySelectorAll('.md-search-result__item').length"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of every page")
    parser.add_argument("--whole", action="store_true", help="pages from top to bottom, not what is seen first")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    args = parser.parse_args()
    site = args.site.resolve()
    pages = [p for p in sorted(site.rglob("*.html")) if p.name != "404.html" and args.only in str(p.relative_to(site))]
    if not pages:
        sys.exit(f"{args.site} holds no pages to check: build it with `make docs`")
    problems = []
    with browser() as chromium:
        target = chromium.ask("Target.createTarget", url="about:blank")["targetId"]
        chromium.session = chromium.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            chromium.ask(f"{domain}.enable")
        for page in pages:
            for width, height in SIZES.items():
                for scheme in ("light", "dark"):
                    name = str(page.relative_to(site).with_suffix("")).replace("/", "-")
                    view = f"{name}, {width} px, {scheme}"
                    picture = args.pictures and args.pictures / f"{name}-{width}-{scheme}.png"
                    complaints = _look(chromium, page, site, width, height, scheme, picture, args.whole)
                    problems += [f"{view}: {what}" for what in complaints]
        problems += _search(chromium, pages[0])
    print(
        "\n".join(problems)
        or f"{len(pages)} pages: no request outside, no complaint, nothing too wide, and search finds"
    )
    sys.exit(bool(problems))


def _look(
    chromium: Browser, page: Path, site: Path, width: int, height: int, scheme: str, picture: Path | None, whole: bool
) -> list[str]:
    chromium.events.clear()
    chromium.ask(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
    )
    chromium.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    chromium.ask("Page.navigate", url=page.as_uri())
    chromium.wait("Page.loadEventFired")
    wider = chromium.ask("Runtime.evaluate", expression=WIDER, returnByValue=True)["result"]["value"]
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        time.sleep(0.2)  # until the theme has faded in
        screenshot = chromium.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        picture.write_bytes(base64.b64decode(screenshot))
    return [f"wider than the window: {what}" for what in wider] + _complaints(chromium, site)


def _complaints(chromium: Browser, site: Path) -> list[str]:
    complaints = []
    for event in chromium.events:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith((site.as_uri(), "data:", "blob:", "about:")):
                complaints.append(f"asked for {url}")
        elif event.get("method") == "Network.loadingFailed" and not params.get("canceled"):
            complaints.append(f"could not load: {params.get('errorText')}")
        elif event.get("method") == "Log.entryAdded":
            complaints.append(params["entry"]["text"])
        elif event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            complaints.append(f"the console says {json.dumps(params)[:300]}")
    return complaints


def _search(chromium: Browser, page: Path) -> list[str]:
    """Type a word into the search box, as a reader would."""
    chromium.events.clear()
    chromium.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    chromium.ask("Page.navigate", url=page.as_uri())
    chromium.wait("Page.loadEventFired")
    chromium.ask("Runtime.evaluate", expression="document.querySelector('.md-search__input').focus()")
    for letter in SEARCHED:
        chromium.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
        chromium.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)
    for _ in range(50):
        if chromium.ask("Runtime.evaluate", expression=RESULTS, returnByValue=True)["result"]["value"]:
            return []
        time.sleep(0.1)
    return [f"a search for {SEARCHED!r} finds nothing"]


if __name__ == "__main__":
    main()
