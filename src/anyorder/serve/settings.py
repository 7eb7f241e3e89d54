"""Who may ask the service, and how much at once. Shut by default: this machine alone, and every request is bounded."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import asdict, dataclass, field

from anyorder.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16  # characters


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for, and how many wait at once."""

    body: int = 32 << 20  # bytes
    rows: int = 100_000  # of a table that is sent, or of draws times rows that come back
    cells: int = 5_000_000
    draws: int = 10_000  # behind an answer with ranges, or rows to sample
    seconds: float = 60.0  # for one answer
    waiting: int = 1_000  # requests
    jobs: int = 16  # kept, running or done
    job_seconds: float = 3600.0
    results: int = 256 << 20  # bytes of tables that finished jobs hold
    kept_seconds: float = 3600.0  # that what a job found is kept

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise UserError(f"the limit {name} must be above 0, got {value}")


@dataclass(frozen=True)
class Settings:
    """How the service runs.

    ``together``: the most questions that are answered in one go; 1 answers every request by itself, though another
    may have asked the same. ``remembered``: bytes of answers
    that are kept, in case the same question comes again; 0 keeps none. ``hosts``: further names that the service is
    asked by, such as that of a proxy in front of it.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    workers: int = field(default_factory=lambda: min(_processors(), 8))
    together: int = 64
    remembered: int = 32 << 20
    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1 or self.together < 1 or self.remembered < 0:
            raise UserError("workers and together must be 1 or more, and remembered 0 or more")
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise UserError(f"a token must have {SHORTEST_TOKEN} ASCII characters or more, got {len(self.token)}")
        if not self.local and self.token is None:
            raise UserError(
                f"--host {self.host} lets other machines ask, so the service needs a token: set ANYORDER_TOKEN, or "
                "--token-file FILE, to a secret of 16 characters or more; without --host only this machine can ask"
            )

    @property
    def local(self) -> bool:
        """Whether only this machine can ask."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
