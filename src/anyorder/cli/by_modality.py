"""One command for models of every modality: each brings its own options, and the model decides whose turn it is.

``anyorder fill MODEL ...`` is the work of ``tables.fill``, ``texts.fill`` and ``images.fill``. Each takes the loaded
model and declares only the options it has. Here their signatures become one command. When it runs, an option that
belongs to another modality is refused, and the rest is handed over. A new modality is one more module in
``MODALITIES``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from anyorder.cli import images, tables, texts
from anyorder.cli.files import load_any
from anyorder.cli.options import ModelFile
from anyorder.cli.signatures import parameters_of, with_signature
from anyorder.errors import UserError

# Each says its MODALITY, as model cards name it, and the NOUN for what it is about.
MODALITIES: tuple[ModuleType, ...] = (tables, texts, images)


def by_modality(name: str, summary: str, modules: Sequence[ModuleType] = MODALITIES) -> Callable[..., None]:
    """The command that hands over to the function of this name in the module of the model's modality."""
    functions = [_Function(module, name) for module in modules if hasattr(module, name)]

    def run(context: typer.Context, model: Path, **values: Any) -> None:
        loaded = load_any(model)
        what = f"{str(model)!r} is a model of {loaded.noun}"
        own = next((function for function in functions if function.modality == loaded.modality), None)
        if own is None:
            raise UserError(f"{name} works with models of {_listed(one.noun for one in functions)}, but {what}")
        given = {option: value for option, value in values.items() if _was_given(context, option)}
        missing = [_written(option) for option in own.required if option.name not in given]
        usage = f": anyorder {name} MODEL {' '.join(map(_written, own.required))}" if missing else ""
        foreign = {option: value for option, value in given.items() if option not in own.options}
        if foreign:
            raise UserError(f"{_owners(foreign, functions)}; {what}{usage}")
        if missing:
            raise UserError(f"{what} and needs {_listed(missing)}{usage}")
        own.call(loaded, **given)

    parameters = [
        Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        Parameter("model", Parameter.KEYWORD_ONLY, annotation=ModelFile),
        *_joined(functions),
    ]
    paragraphs = [
        summary,
        *(f"With a model of {one.noun}: {_lowered(inspect.getdoc(one.call) or '')}" for one in functions),
    ]
    return with_signature(run, parameters, "\n\n".join(paragraphs))


class _Function:
    """What one modality does for a command, and the options that it declares."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.modality: str = module.MODALITY
        self.noun: str = module.NOUN
        self.call: Callable[..., None] = getattr(module, name)
        # The class of the model is imported for type checkers alone: it would bring torch.
        _, *options = parameters_of(self.call, **{self.call.__annotations__["model"]: Any})
        self.options = {option.name: option for option in options}

    @property
    def required(self) -> list[Parameter]:
        return [option for option in self.options.values() if option.default is Parameter.empty]


def _joined(functions: Sequence[_Function]) -> list[Parameter]:
    """The options of all functions: arguments first, then what all share, then what belongs to some, then to one."""
    declared: dict[str, dict[str, Parameter]] = {}
    for function in functions:
        for name, option in function.options.items():
            declared.setdefault(name, {})[function.noun] = option
    # Sorting is stable: within a group the options keep the order in which the modules declare them.
    names = sorted(declared, key=lambda name: (not _is_argument(_any(declared[name])), -len(declared[name])))
    return [_join(declared[name], everyones=len(declared[name]) == len(functions)) for name in names]


def _join(declared: Mapping[str, Parameter], *, everyones: bool) -> Parameter:
    """One option as its owners declare it; the help says whose it is, unless it is everyone's and means the same."""
    first = _any(declared)
    kind, info = get_args(first.annotation)[0], copy.copy(_info(first))
    meanings: dict[str, list[str]] = {}
    for noun, option in declared.items():
        meanings.setdefault(_info(option).help or "", []).append(noun)
    if len(meanings) > 1 or not everyones:
        info.help = "; ".join(f"{', '.join(nouns)}: {meaning}" for meaning, nouns in meanings.items())
    info.metavar = "|".join(dict.fromkeys(_info(option).metavar or "" for option in declared.values())) or None
    default = first.default
    if any(option.default != default for option in declared.values()):
        default = None  # each function has its own
        usual = {noun: option.default for noun, option in declared.items() if option.default not in _UNSAID}
        info.show_default = ", ".join(f"{value} for {noun}" for noun, value in usual.items()) or False
    elif default is Parameter.empty and not everyones:
        default = None
    return first.replace(annotation=Annotated[kind | None if default is None else kind, info], default=default)


_UNSAID = (None, Parameter.empty)


def _owners(given: Mapping[str, Any], functions: Sequence[_Function]) -> str:
    """Which models the given options are for."""
    clauses: dict[str, list[str]] = {}
    for name, value in given.items():
        owners = {function.noun: function.options[name] for function in functions if name in function.options}
        shown = f"the argument {str(value)!r}" if _is_argument(_any(owners)) else _flag(_any(owners))
        clauses.setdefault(_listed(owners), []).append(shown)
    return "; ".join(
        f"{_listed(shown)} {'is' if len(shown) == 1 else 'are'} for models of {nouns}"
        for nouns, shown in clauses.items()
    )


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _any(declared: Mapping[str, Parameter]) -> Parameter:
    return next(iter(declared.values()))


def _info(option: Parameter) -> OptionInfo | ArgumentInfo:
    """What the declaration says to typer."""
    info: OptionInfo | ArgumentInfo = get_args(option.annotation)[1]
    return info


def _is_argument(option: Parameter) -> bool:
    return isinstance(_info(option), ArgumentInfo)


def _written(option: Parameter) -> str:
    """How an option stands on the command line: ``TABLE``, ``--mask PICTURE``."""
    value = _info(option).metavar or "VALUE"
    return value if _is_argument(option) else f"{_flag(option)} {value}"


def _flag(option: Parameter) -> str:
    info = _info(option)
    # Inside Annotated, typer keeps the first name that an option is given as its default.
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    return names[-1] if names else "--" + option.name.replace("_", "-")


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _lowered(text: str) -> str:
    """The sentence as it goes on after a colon."""
    return text[:1].lower() + text[1:]
