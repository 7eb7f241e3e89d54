"""Running the service: one process, one port, an end that waits for what is under way."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from anyorder.serve.settings import Settings

IDLE = 15  # seconds that a connection is kept open without a request


def run(app: FastAPI, settings: Settings, port: int, begun: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; ``begun`` is told the address once the service listens.

    Port 0 takes one that is free. What is under way when the end is asked for is answered first.
    """
    listening = socket.create_server(
        (settings.host.strip("[]"), port), family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    )
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    logging.getLogger("anyorder.serve").setLevel(logging.WARNING)
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
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
