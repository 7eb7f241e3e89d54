"""Options of every fit: defaults under what a mapping (such as a TOML file) says, under what a keyword says.

Unknown names are refused with the nearest valid one, so a misspelt option cannot be silently ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from anyorder.errors import UserError, nearest
from anyorder.networks import networks
from anyorder.support.checks import check_fields
from anyorder.training.options import Options

MOST_COMPONENTS = 1000  # of one mixture: a network has an output for each of them, and none was seen to need fifty


def named(name: str) -> Any:
    """A field that describes a component: its ``name`` and its options."""
    return field(default_factory=lambda: {"name": name})


@dataclass(frozen=True)
class FitOptions:
    """What every fit can be given. A modality adds its own options and sets its own defaults.

    ``network``, ``protocol``, ``masking`` and ``objective`` are a ``name`` and options; masking and objective may be
    ``auto``: then modality and network choose. ``training`` is how to train: see
    :class:`~anyorder.training.options.Options`.
    """

    network: Mapping[str, Any] = named("residual_mlp")
    protocol: Mapping[str, Any] = named("canonical")
    masking: Mapping[str, Any] = named("auto")
    objective: Mapping[str, Any] = named("auto")
    validation_share: float = 0.1
    training: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        check_fields(self, within={"validation_share": "(0, 1)"})
        kind = networks.of(self.network)
        if not kind.trainable:
            others = [name for name in networks.names() if networks.get(name).trainable]
            raise UserError(f"the network {kind.name!r} cannot be trained here; choose one of: {', '.join(others)}")

    @classmethod
    def read(cls, given: Mapping[str, Any] | None, *, minutes: float | None = None, **said: Any) -> Self:
        """From a mapping such as a TOML file holds; ``minutes`` and whatever else is ``said`` win over it."""
        if given is not None and not isinstance(given, Mapping):
            raise UserError(f"config must be a mapping of options, as a TOML file holds them; got {given!r}")
        options = dict(given or {}) | {name: value for name, value in said.items() if value is not None}
        usual = cls.usual(options)
        for entry in dataclasses.fields(cls):
            default = getattr(usual, entry.name)
            if dataclasses.is_dataclass(default) and not isinstance(default, type):
                part = dict(section(options.pop(entry.name, {}), entry.name))
                if entry.name == "training" and minutes is not None:
                    part["minutes"] = minutes
                part = checked_options(type(default), part, f"option of {entry.name}")
                options[entry.name] = dataclasses.replace(default, **part)
            elif isinstance(default, Mapping) and entry.name in options:
                section(options[entry.name], entry.name)
        return dataclasses.replace(usual, **checked_options(cls, options, "option"))

    @classmethod
    def usual(cls, options: Mapping[str, Any]) -> Self:
        """What holds where ``options`` say nothing."""
        return cls()

    def to_json(self) -> dict[str, Any]:
        """Plain values from which :meth:`read` makes the same options."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class PresetOptions(FitOptions):
    """Options of modalities whose networks come in sizes: the network's class says which ones it has.

    A preset is a size, or a recipe: other defaults of any options, under what the user says.
    """

    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options by the name of a preset; ``size`` is the size of its network where that has another name."""

    preset: str = "small"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = networks.of(self.network).presets
        if not isinstance(self.preset, str) or (sizes and self.size not in sizes):
            known = dict.fromkeys([*sizes, *self.recipes])
            raise UserError(f"unknown preset {self.preset!r}; {nearest(self.preset, known)}")

    @classmethod
    def usual(cls, options: Mapping[str, Any]) -> Self:
        """The defaults, or the recipe of the preset that is named."""
        made = cls()
        recipe = dict(cls.recipes.get(str(options.get("preset")), {}))
        recipe.pop("size", None)
        training = dataclasses.replace(made.training, **recipe.pop("training", {}))
        return dataclasses.replace(made, training=training, **recipe)

    @property
    def size(self) -> str:
        """The size of the network."""
        return str(self.recipes.get(self.preset, {}).get("size", self.preset))

    def described_network(self, **facts: Any) -> dict[str, Any]:
        """The preset's sizes under what the user said of the network; ``facts`` that it has no option for are left out.

        A network without presets keeps its own defaults.
        """
        family = networks.of(self.network)
        known = option_names(family)
        heard = {name: value for name, value in facts.items() if name in known}
        return heard | dict(family.presets.get(self.size, {})) | dict(self.network)


def option_names(component: type[Any]) -> set[str]:
    """The names of a component's options."""
    return {entry.name for entry in dataclasses.fields(component) if entry.init}


def section(value: Any, name: str) -> Mapping[str, Any]:
    """``value``, if it is a table of options."""
    if not isinstance(value, Mapping):
        raise UserError(f"{name} must be a table of options, as in [{name}] of a TOML file; got {value!r}")
    return value


def usual_value(entry: dataclasses.Field[Any]) -> Any:
    """What a field holds where nothing is said; MISSING where something must be said."""
    return entry.default if entry.default_factory is dataclasses.MISSING else entry.default_factory()


def checked_options(cls: type[Any], given: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """The options as given, once every name is a field of ``cls`` and every number a number."""
    types = {entry.name: entry for entry in dataclasses.fields(cls)}
    for name, value in given.items():
        if name not in types:
            raise UserError(f"unknown {noun} {name!r}; {nearest(name, types)}")
        default = usual_value(types[name])
        number = default is None or (isinstance(default, int | float) and not isinstance(default, bool))
        if number and (isinstance(value, bool) or not isinstance(value, int | float | type(None))):
            raise UserError(f"{noun} {name!r} must be a number, got {value!r}")
        whole = isinstance(default, int) or name == "steps"
        if whole and isinstance(value, float):
            if not value.is_integer():
                raise UserError(f"{noun} {name!r} must be a whole number, got {value!r}")
            given = {**given, name: int(value)}
    return dict(given)
