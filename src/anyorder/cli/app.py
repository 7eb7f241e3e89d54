"""From the words of a command line to an exit status: one command runs, and whatever it raises becomes one line.

A user's mistake is one line on standard error and exit status 2, never a traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from anyorder.errors import UserError
from anyorder.support.garbage import collect_seldom
from anyorder.support.installed import version_of
from anyorder.support.starts import helps
from anyorder.support.visible import visible
from anyorder.variables.hints import for_commands

app = typer.Typer(
    name="anyorder",
    help="One model, every question: fit a table, texts or pictures once, then ask any conditional question.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

OLD_NAMES = {("fill", "--steps"): "--calls", ("sample", "--draws"): "--count"}
"""Names that an option had, or has in other commands, and what it is called here."""

COMPLETING = "_ANYORDER_COMPLETE"  # set by the shell, when it wants to know how a line can go on


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"anyorder {version_of('anyorder')}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# Usage errors of the option parser (an unknown option, a missing argument) share this base in every version of typer.
_UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0 done, 1 our own fault, 2 a user's mistake, 130 interrupted)."""
    if arguments is None:  # the process is this command, and no one's else
        collect_seldom()
    given = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        # A warning of the library is a remark to the user, not a line of source code.
        warnings.showwarning = _remarks()
        if helps():  # the first of the processes that torchrun has started says the same
            warnings.showwarning = _silence
        warnings.simplefilter("default", UserWarning)
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        if COMPLETING in os.environ:
            app(given, prog_name="anyorder")
        # Not app(): it would turn an interruption and a closed pipe into exit codes of its own.
        command = typer.main.get_command(app)
        with command.make_context("anyorder", _renamed(given) or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as error:
        return error.exit_code
    except SystemExit as error:  # of a completion
        return error.code if isinstance(error.code, int) else 1
    except UserError as error:
        return _complain(str(error))
    except _UsageError as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        where = getattr(getattr(error, "ctx", None), "command_path", "anyorder")
        return _complain(f"{message} (see {where} --help)")
    except BrokenPipeError:
        # `anyorder sample ... | head`: the reader has enough. Keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("anyorder: interrupted\n")
        return 130
    except Exception as error:  # noqa: BLE001 (a user of a command line is not helped by a traceback)
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the latter is torch's
            return _complain("this takes more memory than there is; ask for fewer rows or draws at a time")
        if isinstance(error, OSError) and error.strerror:  # a missing file, a full disk
            return _complain(error.strerror + (f": {error.filename!r}" if error.filename else ""))
        if os.environ.get("ANYORDER_DEBUG"):
            traceback.print_exc()
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _complain(f"internal error: {said} (please report; ANYORDER_DEBUG=1 shows the traceback)")
        return 1


def _renamed(given: list[str]) -> list[str]:
    """The words with the options called as they are today."""
    found = []
    for word in given:
        name, equals, value = word.partition("=")
        found.append(OLD_NAMES.get((given[0], name), name) + equals + value)
    return found


def _remarks() -> Callable[..., None]:
    """A writer of notes that writes each only once: a command may read a table more than once."""
    said: set[str] = set()

    def remark(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = for_commands(" ".join(str(message).split()))
        if issubclass(category, UserWarning) and text not in said:
            said.add(text)
            sys.stderr.write(f"anyorder: note: {visible(text)}\n")

    return remark


def _silence(*_: Any, **__: Any) -> None:
    pass


def _complain(message: str) -> int:
    sys.stderr.write("anyorder: " + visible(" ".join(message.split())) + "\n")
    return 2
