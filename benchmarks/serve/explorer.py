"""The explorer in a real browser: how long after a click all cards are drawn.

    python benchmarks/serve/explorer.py --json benchmarks/results/serve_explorer.json    (five minutes)

A model of the wines (14 columns) and one of a generated table of 60. The window is so tall that every card is on the
screen. A visitor clicks on curves and levels, takes conditions back and reads what the page says before the next click;
times run from the click's handler to behind the frame that paints the cards. Beside it: all columns in one question
against one question a column, both from the page; and the processor's time of the page's main thread for a
click and of the service for its answer, which do not depend on who else is at work.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

import anyorder as ao

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browsing import NoBrowserError, browsing, until
from common import NOT_RUN, ROOT, Json, Record, Smoke, print_rows
from served import Server, serving, wine_model

TIMES = ("serve", "explorer", "questions")
BARS = {"wine": 150, "wide": 500}  # milliseconds at the 95th percentile
MOST_BYTES = 300_000  # of all assets, gzipped
HEIGHTS = {"wine": 1500, "wide": 3900}  # of the window: all cards are on it
DRAWN = "performance.getEntriesByName('anyorder:cards').length"
KNOWN = 3  # conditions at most
ASK = """async ([name, given, columns]) => {
  const began = performance.now();
  for (const some of columns) {
    const answer = await fetch(`/v1/models/${name}/marginals`, {
      method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({given, columns: some}),
    });
    if (!answer.ok) throw new Error(await answer.text());
    await answer.json();
  }
  return performance.now() - began;
}"""


def wide_model(path: Path, columns: int, minutes: float) -> None:
    """A generated table: numbers that share five hidden causes, and every tenth column levels."""
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(600, 5))
    values = causes @ rng.normal(size=(5, columns)) + rng.normal(size=(600, columns))
    frame = pd.DataFrame(values, columns=[f"x{number}" for number in range(columns)])
    for name in frame.columns[9::10]:
        frame[name] = pd.cut(frame[name], 4, labels=["low", "middle", "high", "top"]).astype(str)
    ao.fit(frame, minutes=minutes, seed=0, progress=False).save(path)


def clicks(page: Any, count: int, rng: np.random.Generator) -> list[float]:
    """Milliseconds from each click to all cards drawn."""
    found: list[float] = []
    cards = page.locator("article")
    number = cards.count()
    while len(found) < count:
        drawn = page.evaluate(DRAWN)
        chips = page.locator(".chip button")
        if chips.count() >= KNOWN:
            chips.first.click()
        else:
            card = cards.nth(int(rng.integers(number)))
            if card.evaluate("card => card.classList.contains('given')"):
                continue
            place = card.locator(".plot, .level").first
            box = place.bounding_box()
            page.mouse.click(box["x"] + box["width"] * float(rng.uniform(0.3, 0.7)), box["y"] + box["height"] / 2)
        until(page, f"{DRAWN} > {drawn}")
        found.append(page.evaluate("performance.getEntriesByName('anyorder:cards').at(-1).duration"))
        # Whoever reads lets the page finish what it asks beside the cards.
        page.wait_for_timeout(400)
        until(page, "!document.querySelector('any-order-explorer').shadowRoot.querySelector('.likely.waiting')")
    return found


def one_by_one(page: Any, name: str, server: Server, repeats: int) -> dict[str, float]:
    """All columns in one question against one question a column; each time with other evidence, so nothing is kept."""
    columns = page.locator("article").evaluate_all("cards => cards.map(card => card.dataset.column)")
    number = next(one for one in columns if page.locator(f'article[data-column="{one}"] .plot').count())
    hint = page.locator(f'article[data-column="{number}"] input[type=text]').get_attribute("placeholder")
    value = float(hint.removeprefix("type: ").split()[0])
    rest = [one for one in columns if one != number]
    together, singly, used = [], [], []
    for at in range(repeats):
        given = {number: value * (1 + 0.001 * (at + 1))}
        before = server.seconds
        together.append(page.evaluate(ASK, [name, given, [[]]]))
        used.append(server.seconds - before)
        singly.append(page.evaluate(ASK, [name, given, [[one] for one in rest]]))
    return {
        "together_ms": float(np.median(together)),
        "singly_ms": float(np.median(singly)),
        "ratio": float(np.median(np.array(singly) / np.array(together))),
        "service_processor_ms": 1000 * float(np.mean(used)),
    }


def main_thread(session: Any) -> float:
    """Seconds that the page's main thread has worked."""
    return float(
        next(one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "TaskDuration")
    )


def assets() -> dict[str, int]:
    """Bytes of every file that a page loads, gzipped."""
    folder = ROOT / "src" / "anyorder" / "explorer"
    files = [one for one in sorted(folder.iterdir()) if one.suffix in (".js", ".css", ".html", ".svg")]
    return {one.name: len(gzip.compress(one.read_bytes(), 9)) for one in files}


def measured(browser: Any, name: str, path: Path, count: int, repeats: int) -> dict[str, Any]:
    """One model in one page."""
    with serving(f"{name}={path}") as server:
        page = browser.new_page(viewport={"width": 1900, "height": HEIGHTS[name]})
        # The main thread's own time, whatever else the processor does meanwhile.
        inside = page.context.new_cdp_session(page)
        inside.send("Performance.enable", {"timeDomain": "threadTicks"})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        began = time.perf_counter()
        page.goto(f"http://{server.host}:{server.port}/")
        until(page, f"{DRAWN} > 0")
        opened = time.perf_counter() - began
        clicks(page, 2, np.random.default_rng(1))  # the first answers of a fresh process take longer
        busy = main_thread(inside)
        times = np.array(clicks(page, count, np.random.default_rng(0)))
        busy = (main_thread(inside) - busy) / count
        columns = page.locator("article").count()
        beside = one_by_one(page, name, server, repeats)
        page.close()
        assert not problems, problems
    low, high = np.percentile(times, [50, 95])
    return {"table": name, "columns": columns, "clicks": count, "opened_s": round(opened, 2)} | {
        "p50_ms": round(float(low)),
        "p95_ms": round(float(high)),
        "bar_ms": BARS[name],
        "browser_processor_ms": round(1000 * busy, 1),
        **{key: round(one, 1) for key, one in beside.items()},
    }


def main(count: int = 40, minutes: float = 0.5, json: Json = None, smoke: Smoke = False) -> None:
    """Click, and measure."""
    record = Record(json, smoke=smoke)
    count, minutes, columns, repeats = (2, 0.02, 12, 1) if smoke else (count, minutes, 60, 5)
    try:
        with tempfile.TemporaryDirectory() as folder, browsing() as browser:
            wine, wide = Path(folder) / "wine.anyorder", Path(folder) / "wide.anyorder"
            wine_model(wine, minutes)
            wide_model(wide, columns, minutes)
            rows = [measured(browser, name, path, count, repeats) for name, path in (("wine", wine), ("wide", wide))]
    except NoBrowserError as problem:
        print(f"{NOT_RUN}{problem}")
        return
    sizes = assets()
    print_rows(rows)
    print(f"assets: {sum(sizes.values()) / 1000:.1f} kB gzipped, in {len(sizes)} files (bar: {MOST_BYTES // 1000} kB)")
    about = "milliseconds from a click to all cards drawn, in a browser; one question for all columns against one each"
    facts = {"title": "The explorer in a browser", "about": about, "seed": 0, "minutes": minutes}
    record.write(facts | {"rows": rows, "assets_gzipped": sizes, "assets_bytes": sum(sizes.values())})
    wrong = [
        f"{row['table']}: {row['p95_ms']} ms, at most {row['bar_ms']}" for row in rows if row["p95_ms"] > row["bar_ms"]
    ]
    if sum(sizes.values()) > MOST_BYTES:
        wrong.append(f"assets: {sum(sizes.values())} bytes, at most {MOST_BYTES}")
    for line in wrong:
        print(f"missed: {line}")
    if wrong and not smoke:
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
