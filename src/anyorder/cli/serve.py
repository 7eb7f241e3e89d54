"""``anyorder serve``: the same questions over HTTP, and a page to ask them on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.errors import UserError

TOKEN = "ANYORDER_TOKEN"
MEGABYTE = 1 << 20
SAMPLE = "wine"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL...", help="model files; NAME=FILE gives one another name", show_default=False),
    ] = None,
    host: Annotated[
        str, typer.Option(help="the address to listen on; any but this machine's own needs a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free")] = 8642,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"a file with the token that clients must send; or set {TOKEN}"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="a further name to be asked by, such as that of a proxy; may be repeated"),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="serve a sample model, fitted in a few seconds")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="threads that answer (default: one per processor)")] = None,
    together: Annotated[int, typer.Option(min=1, help="the most questions answered in one go; 1: one by one")] = 64,
    remember: Annotated[int, typer.Option(min=0, metavar="MB", help="answers that are kept, in megabytes")] = 32,
    most_body: Annotated[int, typer.Option(min=1, metavar="MB", help="the largest request, in megabytes")] = 32,
    most_rows: Annotated[int, typer.Option(min=1, help="the most rows in one table")] = 100_000,
    most_draws: Annotated[int, typer.Option(min=2, help="the most draws in one request")] = 10_000,
    most_seconds: Annotated[float, typer.Option(min=0.1, help="the longest that one answer may take")] = 60.0,
) -> None:
    """Answer questions over HTTP, and show a page to ask them on, until it is interrupted.

    Only this machine can ask, unless --host says otherwise; then every request needs the token. Ctrl-C or SIGTERM
    ends it once whoever waits is answered; jobs are stopped, and a second signal ends it at once. A model that cannot
    be loaded is reported and does not stop the others.
    """
    if not models and not demo:
        raise UserError("name a model file to serve, or use --demo for a sample model")
    try:
        from anyorder.serve.app import create_app
    except ImportError as error:
        raise UserError(f"serve needs the extra: pip install 'anyorder[serve]' ({error})") from None
    from anyorder.serve.demo import demo_model
    from anyorder.serve.models import Models, Served
    from anyorder.serve.server import run
    from anyorder.serve.settings import Limits, Settings

    limits = Limits(body=most_body * MEGABYTE, rows=most_rows, draws=most_draws, seconds=most_seconds)
    options = {"workers": workers} if workers else {}
    token = _token(token_file)
    settings = Settings(
        host,
        token,
        together=together,
        remembered=remember * MEGABYTE,
        limits=limits,
        hosts=tuple(name.lower() for name in allow_host or ()),
        **options,
    )
    served = Models.read(models or [], show.note)
    if demo and SAMPLE in served.served:
        raise UserError(f"the sample model is called {SAMPLE!r} too: name yours otherwise, as in mine=FILE")
    if models and not demo and not served.ready:
        raise UserError("none of the models could be loaded")
    if demo:
        served.served[SAMPLE] = Served(SAMPLE, demo_model())

    def begun(address: str) -> None:
        ready = [one.name for one in served.served.values() if one.model is not None]
        typer.echo(f"serving {', '.join(ready)} at {address} (Ctrl-C ends it)")
        if not settings.local:
            show.note(f"other machines can ask: every request needs the header 'Authorization: Bearer {'*' * 8}'")

    try:
        run(create_app(served, settings), settings, port, begun)
    except OSError as error:
        raise UserError(f"cannot listen on {host}, port {port}: {error.strerror or error}; try --port 0") from None


def _token(file: Path | None) -> str | None:
    """The secret that clients must send: of the file, or of the environment."""
    if file is None:
        return os.environ.get(TOKEN, "").strip() or None
    if not file.is_file():
        raise UserError(f"no such file: {str(file)!r}; --token-file names a file that holds the token")
    return file.read_text(encoding="utf-8").strip()
