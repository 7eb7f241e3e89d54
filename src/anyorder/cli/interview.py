"""``anyorder interview``: the model asks in the terminal, and the distribution of the target narrows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from anyorder.cli.acquisition_options import AcquisitionOptions
from anyorder.cli.files import load_table_model
from anyorder.cli.next import print_ranking
from anyorder.cli.options import ModelFile
from anyorder.cli.paths import check_writable
from anyorder.cli.signatures import spelled_out
from anyorder.cli.sparkline import axis_of, in_a_line
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_evidence, parse_names
from anyorder.support.visible import visible

if TYPE_CHECKING:
    from anyorder.tasks.acquisition.interview import Interview
    from anyorder.tasks.acquisition.next_question import NextQuestion

HELP = """a value answers the question; so does a range (30..40) or a set ({red, blue})
skip            ask me later
unknown         cannot be answered (in a group: this column; the others are still asked for)
undo            take back my last answer
why             show all candidates
tell A=1, B=x   add something else that is known
quit            stop here (or Ctrl-D); with --transcript the interview can be resumed
If one of these words is itself an answer, write the command with a colon: :unknown"""
COMMANDS = ("skip", "unknown", "undo", "why", "tell", "quit", "help")
Said = TypeVar("Said")


@spelled_out
def interview(
    model: ModelFile,
    about: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="what is to be learned; a resumed interview remembers it", show_default=False
        ),
    ] = "",
    transcript: Annotated[
        Path | None, typer.Option(metavar="JSON", help="keep every turn in this file, to read or to resume")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="continue the interview in --transcript")] = False,
    *,
    options: AcquisitionOptions,
) -> None:
    """Answer questions about a case, the most useful first, until no other one is worth its cost."""
    from anyorder.tasks.acquisition.interview import Interview, Setup, resumed

    if resume and transcript is None:
        raise UserError("--resume needs --transcript FILE, the interview to continue")
    if transcript is not None:
        check_writable(transcript)
        if transcript.exists() and not resume:
            raise UserError(f"{str(transcript)!r} already exists: continue it with --resume, or choose another file")
        if resume and not transcript.exists():
            raise UserError(f"there is no transcript {str(transcript)!r} to resume")
    if not about and not resume:
        raise UserError("an interview needs --about NAMES, the columns that you want to know about")
    setup = Setup(about=tuple(parse_names(about)) if about else (), **options.rules())
    loaded = load_table_model(model)
    if resume and transcript is not None:
        session = resumed(transcript, loaded.core, setup, draws=options.draws, seed=options.seed)
        typer.echo(f"resumed after {len(session.turns)} turns: {_known(session)}")
    else:
        session = Interview(loaded.core, setup, options.draws, options.seed)
    session.tell(parse_evidence(options.given))
    _Terminal(session, transcript).run()


class _Terminal:
    """Prints and reads lines; every decision is made by the interview."""

    def __init__(self, session: Interview, transcript: Path | None) -> None:
        self.session, self.transcript = session, transcript
        self.axis = {name: axis_of(session.prior(name)) for name in session.setup.about}
        self.ended = False

    def run(self) -> None:
        typer.echo("type an answer, or help")
        self.print_targets()
        while not self.ended:
            question = self.session.next()
            if question.best is None:
                self.stop(str(question.stop))
            else:
                self.turn(question, question.best)
            if self.transcript is not None:
                self.session.save(self.transcript)
        typer.echo(f"known: {_known(self.session)}")
        if self.session.measurements.priced or self.session.left is not None:
            typer.echo(f"spent: {self.session.spent:g}")

    def turn(self, question: NextQuestion, name: str) -> None:
        """Ask until something is settled. The answered columns of a group are kept, whatever comes after them."""
        answered: dict[str, str] = {}
        unanswered: list[str] = []
        typer.echo(f"\n{visible(name)}? ({_promise(question)}{self.cost(name)})")
        columns = self.session.columns(name)
        while len(answered) + len(unanswered) < len(columns):
            column = columns[len(answered) + len(unanswered)]
            line = self.read(f"  {column}{self.hint(column)}: ")
            command, rest = self.command(column, line)
            if command == "why":
                print_ranking(question)
            elif command == "help":
                typer.echo(HELP)
            elif command == "undo" and (answered or unanswered):
                before = columns[len(answered) + len(unanswered) - 1]
                if answered.pop(before, None) is None:
                    unanswered.remove(before)
            elif command == "unknown":
                unanswered.append(column)
            elif command == "tell" and not self.volunteer(rest):
                pass  # a mistake in it: the question stands
            elif command is not None:
                break
            elif (said := self.accepted(column, str(line))) is not None:
                answered[column] = said
        else:
            command = "unknown" if unanswered else None
        if answered:
            self.answer(name, answered)
        if command == "undo":
            self.undo()
        elif command == "quit":
            self.ended = True
        elif command in ("skip", "unknown"):
            (self.session.skip if command == "skip" else self.session.unknown)(name)

    def answer(self, name: str, answered: dict[str, str]) -> None:
        try:
            self.session.answer(name, answered)
        except UserError as error:  # each is possible, but not all together: the question comes again
            typer.echo(visible(f"  {error}"))
        self.print_targets()

    def stop(self, reason: str) -> None:
        """Nothing is worth asking, unless the user adds or takes back something."""
        typer.echo(f"\nstop: {reason}")
        while not self.ended:
            line = self.read("  (Enter ends; undo or tell A=1 continues) ")
            word, _, rest = (line or "").strip().removeprefix(":").partition(" ")
            if word == "undo":
                self.undo()
                return
            if word == "tell" and self.volunteer(rest):
                return
            if word in ("", "quit"):
                self.ended = True
            elif word not in ("undo", "tell"):
                typer.echo(f"  nothing is being asked, so {visible(word)!r} answers nothing")

    def undo(self) -> None:
        turn = self.session.undo()
        what = "nothing to undo" if turn is None else f"forgotten: {turn.name or 'what was added'} ({turn.outcome})"
        typer.echo(visible(what))
        self.print_targets()

    def volunteer(self, text: str) -> bool:
        """Take in something that was not asked for; returns whether it was kept."""
        evidence = self.attempt(partial(parse_evidence, text))
        if not evidence or not self.attempt(partial(self.session.check, evidence)):
            return False
        if not all(self.meant(column, said) for column, said in evidence.items()):
            return False
        self.session.tell(evidence)
        self.print_targets()
        return True

    def accepted(self, column: str, line: str) -> str | None:
        """The answer, if it is valid and meant; otherwise say what is expected."""
        if not self.attempt(partial(self.session.check, {column: line})):
            return None
        return line.strip() if self.meant(column, line.strip()) else None

    def meant(self, column: str, said: str) -> bool:
        """Whether the user means it: a number far out must be confirmed."""
        remark = self.session.strange(column, said)
        if remark is None:
            return True
        sure = self.read(f"  {remark}; keep it? [y/N] ")
        return sure is not None and sure.strip().lower() in ("y", "yes")

    def attempt(self, action: Callable[[], Said]) -> Said | None:
        """The result, or None after a mistake, which is printed and costs nothing."""
        try:
            return action()
        except UserError as error:
            typer.echo(visible(f"  {error}"))
            return None

    def command(self, column: str, line: str | None) -> tuple[str | None, str]:
        """Which command a line is, if any: a level of the same name wins unless there is a colon."""
        if line is None:
            return "quit", ""
        word, _, rest = line.strip().partition(" ")
        levels = [str(level).casefold() for level in self.session.model.schema[column].levels]
        if word in ("", "?") and line.strip().casefold() not in levels:
            return "help", ""
        named = word.removeprefix(":").casefold()
        if named not in COMMANDS or (not word.startswith(":") and word.casefold() in levels):
            return None, ""
        return (None, "") if rest and named != "tell" else (named, rest)

    def read(self, prompt: str) -> str | None:
        try:
            return input(visible(prompt))
        except (EOFError, KeyboardInterrupt):
            typer.echo("")
            return None

    def cost(self, name: str) -> str:
        session = self.session
        left = "" if session.left is None else f" of {session.left:g} left"
        return f", costs {session.measurements.cost(name):g}{left}" if session.measurements.priced or left else ""

    def hint(self, column: str) -> str:
        levels = [str(level) for level in self.session.model.schema[column].levels]
        more = " / ..." if len(levels) > 8 else ""
        return f" ({' / '.join(levels[:8])}{more})" if levels else ""

    def print_targets(self) -> None:
        """One line for each target: its distribution now."""
        for name, answer in self.session.posterior().items():
            typer.echo(visible(f"{name} {in_a_line(answer, self.axis[name])}"))


def _promise(question: NextQuestion) -> str:
    """What the best question is expected to tell, alone and with the one that may follow it."""
    best = question.candidates[0]
    then = "" if best.ahead is None else f", with the next one {float(best.ahead):.3g}"
    return f"expected gain {float(best.gain):.3g} {question.unit}{then}"


def _known(session: Interview) -> str:
    return visible(", ".join(f"{column}={said}" for column, said in session.known.items()) or "nothing")
