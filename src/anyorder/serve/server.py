"""Running the service: one process, one port, an end that waits for what is under way."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from anyorder.serve.settings import Settings
from anyorder.serve.workers import GRACE

log = logging.getLogger("anyorder.serve")
IDLE = 15  # seconds that a connection is kept open without a request


def run(app: FastAPI, settings: Settings, port: int, begun: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; ``begun`` is told the address once the service listens.

    Port 0 takes one that is free. When the end is asked for, whoever waits for an answer still gets it. Jobs are
    stopped: nobody could fetch what they find. A second signal ends the process at once.
    """
    name = settings.host.strip("[]")
    listening = socket.create_server((name, port), family=socket.AF_INET6 if ":" in name else socket.AF_INET)
    host = f"[{name}]" if ":" in name else name
    log.setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=IDLE,
        limit_concurrency=None,
        h11_max_incomplete_event_size=1 << 16,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 5,
    )
    begun(f"http://{host}:{listening.getsockname()[1]}/")
    # Once all is answered, uvicorn raises the signal again, for whoever else may want it: nobody, here.
    # A second signal means: at once.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Server(config).run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if app.state.service.workers.working:
        # Python would wait for its threads; nothing they do is wanted, and none of them writes anything.
        log.warning("work that nobody waits for did not end within %g seconds", GRACE)
        _leave(0)


class _Server(uvicorn.Server):
    """Ends when it has answered, or at once if it is told so a second time."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _leave(128 + sig)
        super().handle_exit(sig, frame)


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
