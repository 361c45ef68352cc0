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
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("site", type=Path)
    asked.add_argument("--pictures", type=Path, help="a folder for a picture of every page")
    asked.add_argument("--whole", action="store_true", help="pages from top to bottom, not what is seen first")
    asked.add_argument("--only", default="", help="pages whose name contains this")
    given = asked.parse_args()
    site = given.site.resolve()
    pages = [p for p in sorted(site.rglob("*.html")) if p.name != "404.html" and given.only in str(p.relative_to(site))]
    if not pages:
        sys.exit(f"{given.site} holds no pages to check: build it with `make docs`")
    wrong = []
    with browser() as shown:
        target = shown.ask("Target.createTarget", url="about:blank")["targetId"]
        shown.session = shown.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            shown.ask(f"{domain}.enable")
        for page in pages:
            for width, height in SIZES.items():
                for scheme in ("light", "dark"):
                    name = str(page.relative_to(site).with_suffix("")).replace("/", "-")
                    where = f"{name}, {width} px, {scheme}"
                    picture = given.pictures and given.pictures / f"{name}-{width}-{scheme}.png"
                    found = _look(shown, page, site, width, height, scheme, picture, given.whole)
                    wrong += [f"{where}: {what}" for what in found]
        wrong += _search(shown, pages[0])
    print(
        "\n".join(wrong) or f"{len(pages)} pages: no request outside, no complaint, nothing too wide, and search finds"
    )
    sys.exit(bool(wrong))


def _look(
    shown: Browser, page: Path, site: Path, width: int, height: int, scheme: str, picture: Path | None, whole: bool
) -> list[str]:
    shown.events.clear()
    shown.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
    shown.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    shown.ask("Page.navigate", url=page.as_uri())
    shown.wait("Page.loadEventFired")
    wider = shown.ask("Runtime.evaluate", expression=WIDER, returnByValue=True)["result"]["value"]
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        time.sleep(0.2)  # until the theme has faded in
        taken = shown.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        picture.write_bytes(base64.b64decode(taken))
    return [f"wider than the window: {what}" for what in wider] + _complaints(shown, site)


def _complaints(shown: Browser, site: Path) -> list[str]:
    found = []
    for event in shown.events:
        given = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            asked = given["request"]["url"]
            if not asked.startswith((site.as_uri(), "data:", "blob:", "about:")):
                found.append(f"asked for {asked}")
        elif event.get("method") == "Network.loadingFailed" and not given.get("canceled"):
            found.append(f"could not load: {given.get('errorText')}")
        elif event.get("method") == "Log.entryAdded":
            found.append(given["entry"]["text"])
        elif event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            found.append(f"the console says {json.dumps(given)[:300]}")
    return found


def _search(shown: Browser, page: Path) -> list[str]:
    """Type a word into the search box, as a reader would."""
    shown.events.clear()
    shown.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    shown.ask("Page.navigate", url=page.as_uri())
    shown.wait("Page.loadEventFired")
    shown.ask("Runtime.evaluate", expression="document.querySelector('.md-search__input').focus()")
    for letter in SEARCHED:
        shown.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
        shown.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)
    for _ in range(50):
        if shown.ask("Runtime.evaluate", expression=RESULTS, returnByValue=True)["result"]["value"]:
            return []
        time.sleep(0.1)
    return [f"a search for {SEARCHED!r} finds nothing"]


if __name__ == "__main__":
    main()
