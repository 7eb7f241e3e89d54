"""The shapes of answers, for the description of the service; times are texts (ISO 8601)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Plain: TypeAlias = bool | int | float | str
Prob = Annotated[float, Field(ge=-1e-9, le=1 + 1e-9)]
Notes = Annotated[list[str], Field(description="what is worth knowing, such as evidence far outside of the data")]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ModelFacts(_Answer):
    """One model that is served."""

    name: str
    status: Literal["ready", "failed"]
    modality: Literal["table", "text", "images"] | None
    error: str | None = Field(description="why it could not be loaded")
    columns: int | None = Field(description="of a table")
    shape: list[int] | None = Field(description="of a picture: height, width, channels")
    levels: int | None = Field(description="of a pixel: how many values it has")
    modes: list[str] | None = Field(description="masking modes that pictures can be filled in")
    length: int | None = Field(description="of a text: characters in one window")
    alphabet: str | None = Field(description="the characters that a model of texts knows")
    created: str | None


class ModelList(_Answer):
    """All models."""

    version: str
    models: list[ModelFacts]
    limits: dict[str, float]


class ModelCard(_Answer):
    """How a model came to be."""

    name: str
    card: dict[str, Any]


class LevelShare(_Answer):
    """A level, as people write it, and how often it occurs."""

    level: Plain
    written: str
    share: Prob | None


class AxisFacts(_Answer):
    """The cells of a column: edges to draw by, values to condition on, texts to show."""

    edges: list[float] = Field(description="ascending; days since 1970 for times; a cell holds its upper edge")
    values: list[Plain] = Field(description="the same edges as values of the column")
    written: list[str] = Field(description="the same edges as people write them")
    logarithmic: bool
    step: float = Field(description="between neighbouring values of whole numbers and days; 0 on a line")


class SeenEnd(_Answer):
    """One end of what was seen of a column."""

    value: Plain
    written: str
    number: float = Field(description="as the edges of the axis have it")


class LevelProb(_Answer):
    """A level and its probability."""

    level: Plain
    written: str
    prob: Prob


class MarginalFacts(_Answer):
    """One column, given what is known."""

    kind: str
    probs: list[LevelProb] | None = Field(
        None, description="of levels; of a number that often has certain values, of those"
    )
    cells: list[Prob] | None = Field(None, description="the probability of each cell of the column's axis")
    below: Prob | None = Field(None, description="the probability below the axis")
    above: Prob | None = Field(None, description="the probability above the axis")
    mean: Plain | None = None
    median: Plain | None = None
    low: Plain | None = Field(None, description="the lower end of the central 90 %")
    high: Plain | None = Field(None, description="its upper end")
    best: Plain | None = Field(None, description="the most probable level")
    written: dict[str, str] = Field(description="mean, median, low, high and best as people write them")
    standard_error: float = Field(description="of a probability, at most; above 0 where draws stand for ranges")


class ColumnFacts(_Answer):
    """What is to be known of one column before any question."""

    name: str
    kind: Literal["continuous", "integer", "atoms", "boolean", "categorical", "datetime", "ordinal", "spiked"]
    levels: list[LevelShare]
    atoms: list[float] | None = Field(None, description="numbers that the column often has exactly")
    bounds: list[float | None] | None = None
    bounds_are: str | None = None
    step: float | None = Field(None, description="the precision of its numbers")
    context: bool = Field(description="only ever evidence, never asked; has to be given unless it is optional")
    optional: bool
    missing_can_be_given: bool = Field(description='whether {"missing": true} can be given')
    ordered: bool = Field(description="whether it has a median, and ranges")
    discrete: bool
    own_form: bool = Field(description="whether values are written in a way of their own, such as $1,204.50")
    resolution: str | None = None
    zone: str | None = None
    axis: AxisFacts | None = None
    seen: list[SeenEnd] | None = Field(None, description="the least and the greatest value in training")
    marginal: MarginalFacts | None = Field(description="with nothing known; null where there is context")


class SchemaAnswer(_Answer):
    """The columns of a model."""

    name: str
    columns: list[ColumnFacts]
    left_out: dict[str, str] = Field(description="columns that nothing could be learned of, and why")
    missing_marks: list[str]
    rules: list[str]
    notes: Notes


class Number(_Answer):
    """A number, and how sure it is."""

    value: Plain | None
    standard_error: float
    doubt: float | None = None
    method: str


class EvidenceAnswer(_Answer):
    """What the model says of the evidence itself."""

    given: str = Field(description="what is known, in words")
    log_prob: Number | None = Field(
        description="log p of the evidence in nats: a density where values of numbers are given; null without evidence"
    )
    rarity: Prob | None = Field(
        None,
        description="the share of the model's own rows that are less likely in these columns; null under ranges",
    )
    notes: Notes


class MarginalsAnswer(_Answer):
    """All columns given what is known."""

    given: str = Field(description="what is known, in words")
    columns: dict[str, MarginalFacts]
    evidence: EvidenceAnswer | None = Field(None, description="if it was asked for")
    notes: Notes


class AskAnswer(BaseModel):
    """What ``anyorder ask --json`` prints, and notes."""

    model_config = ConfigDict(extra="allow")

    question: str
    evidence: dict[str, str]
    answers: dict[str, dict[str, Any]]
    values: dict[str, str] | None = None
    log_prob: float | None = None
    probability: Number | None = None
    entropy: Number | None = None
    mutual_information: Number | None = None
    means: dict[str, Number] | None = None
    medians: dict[str, Number] | None = None
    modes: dict[str, Number] | None = None
    notes: Notes


class TableAnswer(_Answer):
    """A table."""

    columns: list[str]
    rows: list[list[Plain | None]]
    notes: Notes


class FilledCell(_Answer):
    """A cell that was filled, and how sure its value is."""

    row: int
    column: str
    value: Plain | None
    written: str
    low: Plain | None = Field(None, description="the lower end of the central 90 %")
    high: Plain | None = None
    certainty: Prob = Field(
        description="of a level its probability; of a number or a time how much narrower its 90 % are than with "
        "nothing known (0 if they are wider), or than its axis where the model has context"
    )


class FillAnswer(TableAnswer):
    """A table whose holes are filled; with draws several below each other, numbered in a column ``draw``."""

    filled: list[FilledCell] | None = Field(None, description="if uncertainty was asked for")


class ScoreAnswer(_Answer):
    """How likely data is."""

    rows: int
    given: list[str] | None = None
    mean: float | None
    standard_error: float | None
    unit: str
    log_prob: list[float | None]
    notes: Notes


class CellAnomaly(_Answer):
    """A cell that is surprising given the rest of its row."""

    row: int
    column: str
    value: Plain | None
    expected: Plain | None
    probability: Prob
    surprise: float | None


class RowAnomaly(_Answer):
    """A row that is surprising as a whole, and the cell of it that is least probable given the rest."""

    row: int
    surprise: float | None
    probability: Prob
    column: str | None = Field(description="null in a row without a known cell; then value and expected are, too")
    value: Plain | None
    expected: Plain | None


class AnomaliesAnswer(_Answer):
    """The most surprising cells, or rows."""

    rows: int
    anomalies: list[CellAnomaly] | list[RowAnomaly]
    notes: Notes


class NextAnswer(BaseModel):
    """What ``anyorder next --json`` prints, and notes."""

    model_config = ConfigDict(extra="allow")

    about: list[str]
    unit: str
    best: str | None
    chosen: list[str]
    stop: str | None
    candidates: list[dict[str, Any]]
    notes: Notes


class TextFilling(_Answer):
    """One way to fill the holes of a text."""

    text: str
    nats: float | None
    holes: list[int] = Field(description="the positions that were filled")
    confidence: list[Prob] = Field(description="the probability of each filled character when it was chosen")


class TextFillAnswer(_Answer):
    """The text with its holes filled."""

    fillings: list[TextFilling]
    notes: Notes


class TextsAnswer(_Answer):
    """Texts that were drawn."""

    texts: list[str]
    notes: Notes


class PicturesAnswer(_Answer):
    """Pictures: nested lists of whole numbers, or PNG files in base64."""

    shape: list[int]
    levels: int
    pictures: list[Any]
    notes: Notes


class JobAnswer(_Answer):
    """How far a job is."""

    id: str
    what: str
    model: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int = Field(description="rows")
    total: int | None
    seconds: float
    error: dict[str, Any] | None = None


class Health(_Answer):
    """Whether the service is there, and its models."""

    status: Literal["ok", "unavailable"]
    models: dict[str, int] = Field(description="how many are ready, and how many failed")
