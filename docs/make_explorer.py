"""The picture of the explorer in README and docs: the sample model with two conditions, in a real browser.

python docs/make_explorer.py    (half a minute; writes docs/images/explorer.png)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks" / "serve"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from anyorder.serve.demo import demo_model

from browsing import browsing
from served import serving

ROOT = Path(__file__).resolve().parents[1]
GIVEN = {"cultivar": {"value": "cultivar 1"}, "alcohol": {"low": 13, "high": 13.8}}
PINS = ["cultivar", "alcohol", "proline", "flavanoids"]


def main() -> None:
    """Open the page, wait until everything is said, take the picture."""
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        path = Path(folder) / "wine.anyorder"
        demo_model().save(path)
        with serving(str(path)) as server:
            page = browser.new_page(viewport={"width": 1400, "height": 985}, color_scheme="light")
            state = f"given={quote(json.dumps(GIVEN))}&pins={quote(json.dumps(PINS))}"
            page.goto(f"http://{server.host}:{server.port}/#{state}")
            page.get_by_text("log-probability").wait_for()
            page.screenshot(path=ROOT / "docs" / "images" / "explorer.png")


if __name__ == "__main__":
    main()
