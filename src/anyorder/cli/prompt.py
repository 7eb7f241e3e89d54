"""The prompt of ``anyorder ask MODEL``: one question after another, with completion, history and help.

Lines are read by Python's own readline, which every Unix Python has: completion with TAB, history with the arrow keys.
Where it is missing (Windows), lines are read plainly. A mistake is shown under the place where it stands.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anyorder.cli import show
from anyorder.cli.completion import completions
from anyorder.errors import UserError
from anyorder.questions.facts import variable_facts
from anyorder.questions.grammar import Question, parse_question
from anyorder.support.visible import visible
from anyorder.support.words import TextError

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel

MARK = "? "
COMMANDS = ("help", "columns", "quit")
KEPT = 1000  # lines of history
HELP = """what is asked | what is known; columns that are not named are left open
  price                        the distribution of a column
  price, tax | rooms=6         of two, where rooms is 6
  price | age=30..40           a range; also: age > 30, 20 < age <= 30, age between 30 and 40
  price | town = Ely or York   one of several values; also: town={Ely, York}, town != Ely
  P(price > 30 | rooms=6)      a probability; also: P(price < 10 or price > 90), P(price > cost)
  E[price | rooms=6]           the mean; also: median(...), mode(...)
  H(price)   I(price; tax)     entropy, and what two columns tell about each other
Put quotes around a name or value with a comma or a sign in it: price > "1,000"
columns   list the columns          TAB    complete a name or value
help      this text                 quit   end (or Ctrl-D)"""


class Prompt:
    """Reads lines and prints answers; a mistake leaves it open."""

    def __init__(self, model: TableModel, answer: Callable[[str, Question], None]) -> None:
        self.model, self.answer = model, answer

    def run(self) -> None:
        """Answer until the user ends it."""
        names = self.model.schema.names
        some = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
        typer.echo(visible(f"columns: {some}"))
        typer.echo("type a question, or help, columns, quit; TAB completes")
        with self._editing():
            while True:
                try:
                    line = input(MARK).strip()
                except KeyboardInterrupt:  # drops the line, as in a shell
                    typer.echo("")
                    continue
                except EOFError:
                    typer.echo("")
                    return
                if self._is(line, "quit", "exit"):
                    return
                self.turn(line)

    def turn(self, line: str) -> None:
        """Answer one line."""
        if not line:
            return
        if self._is(line, "help", "?"):
            typer.echo(HELP)
        elif self._is(line, "columns"):
            variables = self.model.schema.variables
            show.print_variables([variable_facts(variable) for variable in variables])
        else:
            self._question(line)

    def _is(self, line: str, *commands: str) -> bool:
        """Whether the line is one of these commands: a column of that name goes first, unless there is a colon."""
        word = line.removeprefix(":").casefold()
        return word in commands and (line.startswith(":") or line not in self.model.schema)

    def _question(self, line: str) -> None:
        try:
            with warnings.catch_warnings():  # a note of an earlier question may be one of this one too
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = _note
                self.answer(line, parse_question(line))
        except TextError as error:
            here = error.text == line  # and not in a rule, or in the evidence of --given
            self._complain(error.at if here else None, error.what if here else str(error))
        except UserError as error:
            self._complain(place_of_mistake(self.model, line), str(error))
        except KeyboardInterrupt:
            typer.echo("interrupted")

    def _complain(self, at: int | None, message: str) -> None:
        if at is not None:
            typer.echo(" " * (len(MARK) + at) + "^")
        typer.echo(visible(" ".join(message.split())))

    @contextlib.contextmanager
    def _editing(self) -> Iterator[None]:
        """Completion and history, if this Python has readline."""
        try:
            import readline
        except ImportError:
            yield
            return
        found: list[str] = []

        def complete(before: str, number: int) -> str | None:
            if number == 0:
                start, options = completions(self.model.schema, before, COMMANDS)
                found[:] = [before[:start] + option for option in options]
            return found[number] if number < len(found) else None

        def listed(line: str, matches: Sequence[str], _: int) -> None:
            start, _options = completions(self.model.schema, line, COMMANDS)
            sys.stdout.write("\n" + "  ".join(match[start:] for match in matches) + f"\n{MARK}{line}")
            sys.stdout.flush()

        before = readline.get_completer(), readline.get_completer_delims()
        readline.set_completer(complete)
        readline.set_completer_delims("")  # names have blanks: the whole line is completed
        if hasattr(readline, "set_completion_display_matches_hook"):
            readline.set_completion_display_matches_hook(listed)
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
        history = history_file()
        with contextlib.suppress(OSError):
            readline.clear_history()
            readline.read_history_file(history)
        try:
            yield
        finally:
            readline.set_history_length(KEPT)
            with contextlib.suppress(OSError):  # a home that cannot be written to
                history.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))  # questions may name people
                readline.write_history_file(history)
            readline.set_completer(before[0])
            readline.set_completer_delims(before[1])


def history_file() -> Path:
    """Where the lines of earlier prompts are kept: in the folder that the system has for a user's state."""
    if named := os.environ.get("XDG_STATE_HOME"):
        folder = Path(named)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home())
    else:
        folder = Path.home() / ".local" / "state"
    return folder / "anyorder" / "history"


def place_of_mistake(model: TableModel, line: str) -> int | None:
    """Where the name or value stands that the model does not know; None if that is not what is wrong."""
    from anyorder.questions.comparisons import separated
    from anyorder.questions.events import understand

    question, schema = parse_question(line), model.schema
    for name in (*question.asked, *question.beside, *question.evidence):
        if name not in schema:
            return _place(line, name)
    for said in (question.values, question.evidence):
        for name, value in said.items():
            try:
                for column, rest in separated(model.core.encoding, {name: value})[0].items():
                    understand(model.core.encoding, column, rest, evidence=said is question.evidence)
            except UserError:
                at = _place(line, name, line.find("|") if said is question.evidence else 0)
                return at if at is None else (_place(line, value, at + len(name)) or at)
    return None


def _place(line: str, word: str, start: int = 0) -> int | None:
    found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(line, max(start, 0))
    return found.start() if found else None


def _note(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(visible("note: " + " ".join(str(message).split())))
