"""What the benchmarks of the service share: a server in a process of its own, and a client that costs little."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

import anyorder as ao

from common import ROOT

STARTS = 120.0  # seconds at most


def wine_model(path: Path, minutes: float) -> None:
    """A model of the wines: thirteen measurements and the cultivar."""
    data = load_wine(as_frame=True)
    frame = data.data.assign(cultivar=[data.target_names[number] for number in data.target])
    ao.fit(frame, minutes=minutes, seed=0, progress=False).save(path)


@dataclass
class Server:
    """A service that runs."""

    process: subprocess.Popen[str]
    host: str
    port: int

    @property
    def seconds(self) -> float:
        """The processor's seconds that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        """The memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


@contextmanager
def serving(*arguments: str) -> Iterator[Server]:
    """``anyorder serve`` on a port of 127.0.0.1 that is free; it is ended in any case."""
    command = [sys.executable, "-m", "anyorder", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    late = threading.Timer(STARTS, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        said = re.search(r"http://([\d.]+):(\d+)/", process.stdout.readline())
        late.cancel()
        if said is None:
            raise SystemExit("the service did not start")
        yield Server(process, said[1], int(said[2]))
    finally:
        late.cancel()
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Client:
    """One connection that is kept open: a request after the other, as bytes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, body: bytes, timeout: float = 120.0) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        return await asyncio.wait_for(self._ask(path, body), timeout)

    async def _ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        if self.writer is None or self.writer.is_closing():
            self.reader, self.writer = await asyncio.open_connection(self.server.host, self.server.port)
        assert self.reader is not None
        head = f"POST {path} HTTP/1.1\r\nHost: {self.server.host}:{self.server.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode("ascii") + body)
        said = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.findall(rb"(?i)content-length: (\d+)", said)[0])
        answer = await self.reader.readexactly(length)
        if b"connection: close" in said.lower():
            self.close()
        return int(said[9:12]), answer

    def close(self) -> None:
        """End the connection."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def rows_of_wine() -> Any:
    """The wines themselves, as values to give."""
    data = load_wine(as_frame=True)
    return data.data.assign(cultivar=[data.target_names[number] for number in data.target])


def questions(count: int, seed: int, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
    """Paths and bodies of different questions, the kinds in turn."""
    rng = np.random.default_rng(seed)
    wines = rows_of_wine()
    names = list(wines.columns)
    found = []
    for number in range(count):
        row = wines.iloc[int(rng.integers(len(wines)))]
        known = rng.choice(names, size=int(rng.integers(1, 5)), replace=False).tolist()
        given = {name: row[name] if name == "cultivar" else _near(float(row[name]), rng) for name in known}
        asked = str(rng.choice([name for name in names[:-1] if name not in known]))
        typed = ", ".join(f'"{name}"={value}' for name, value in given.items())
        bodies: dict[str, tuple[str, dict[str, Any]]] = {
            "marginals": ("marginals", {"given": given}),
            "probability": ("ask", {"question": f'P("{asked}" > {row[asked]} | {typed})'}),
            "mean": ("ask", {"question": f'E["{asked}" | {typed}]'}),
            "median": ("ask", {"question": f'median("{asked}" | {typed})'}),
            "sample": ("sample", {"given": given, "count": 5, "seed": int(rng.integers(1 << 30))}),
        }
        path, body = bodies[kinds[number % len(kinds)]]
        found.append((f"/v1/models/wine/{path}", json.dumps(body).encode("utf-8")))
    return found


def _near(value: float, rng: np.random.Generator) -> float:
    """A value of the same column close by: whole numbers stay whole."""
    near = value * float(rng.uniform(0.97, 1.03))
    return float(round(near)) if value.is_integer() and value > 20 else round(near, 4)
