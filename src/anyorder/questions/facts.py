"""The facts of an answer as plain values: what the command line prints, the service answers, and JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyorder.questions.grammar import Question, write_question
from anyorder.support.plain import plain

if TYPE_CHECKING:
    from anyorder.questions.answer import Answer
    from anyorder.questions.ask import Reply
    from anyorder.variables.schema import Variable

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
UNORDERED = ("boolean", "categorical")  # kinds without a mean or quantiles


def reply_facts(reply: Reply, read: Question, *, doubts: bool = True) -> dict[str, Any]:
    """What there is to say of a reply, as ``anyorder ask --json`` prints it and the service answers.

    ``doubts``: with the model's own doubt about every number, where it has one. That takes several times as long.
    """
    result: dict[str, Any] = {"question": write_question(read), "evidence": dict(read.evidence)}
    result["answers"] = {name: answer_facts(answer, doubts=doubts) for name, answer in reply.answers.items()}
    if read.values:
        result["values"] = dict(read.values)
    for name, number in reply.numbers.items():
        result[name] = plain(number) if name == "log_prob" else estimate_facts(number, doubts=doubts)
        if name == "log_prob" and standard_error(number):
            result["standard_error"] = standard_error(number)
        if name == "log_prob" and doubts and own_doubt(number):
            result["doubt"] = own_doubt(number)
    for what in ("means", "medians", "modes"):
        if found := getattr(reply, what):
            result[what] = {name: estimate_facts(value, doubts=doubts) for name, value in found.items()}
    return result


def answer_facts(answer: Answer, *, doubts: bool = True) -> dict[str, Any]:
    """The facts of one answer: probabilities where it is discrete, moments and quantiles where it is a number."""
    facts: dict[str, Any] = {"kind": answer.kind}
    errors: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if answer.variable.levels or answer.kind == "spiked":
        pairs = list(answer.probs().items())
        errors["probs"] = {str(level): standard_error(probability) for level, probability in pairs}
        if doubts:
            own["probs"] = {str(level): own_doubt(probability) for level, probability in pairs}
        if answer.kind in UNORDERED:
            pairs.sort(key=lambda pair: -pair[1])
        facts["probs"] = {str(level): float(probability) for level, probability in pairs}
    if answer.kind not in UNORDERED:
        if answer.kind != "ordinal":  # levels have an order but no distance
            mean, deviation = answer.mean(), answer.std()
            facts["mean"], facts["std"] = plain(mean), plain(deviation)
            errors["mean"], errors["std"] = standard_error(mean), standard_error(deviation)
            if doubts:
                own["mean"], own["std"] = own_doubt(mean), own_doubt(deviation)
        values = answer.quantile(list(QUANTILES))
        facts["quantiles"] = {f"{level:g}": plain(value) for level, value in zip(QUANTILES, values, strict=True)}
        if in_own_form(answer.variable):
            written = {f"{level:g}": answer.written(value) for level, value in zip(QUANTILES, values, strict=True)}
            facts["written"] = {"quantiles": written}
            if "mean" in facts:
                facts["written"]["mean"] = answer.written(mean)
    if hasattr(answer, "method"):  # an estimate under ranges says how good it is
        facts["standard_errors"], facts["method"] = errors, answer.method
    if doubts and getattr(answer, "parts", None) is not None:  # so does a model about itself
        facts["doubts"] = own
    return facts


def in_own_form(variable: Variable) -> bool:
    """Whether the values of a column are written in another way than numbers and times are printed."""
    return variable.notation is not None or bool(variable.form and variable.form not in ("text", "date"))


def standard_error(value: Any) -> float:
    """The standard error of an estimate; 0 for a number that is exact."""
    return float(getattr(value, "standard_error", 0.0))


def own_doubt(value: Any) -> float:
    """The model's own doubt about a number; 0 where it has none."""
    return float(getattr(value, "doubt", 0.0))


def estimate_facts(value: Any, *, doubts: bool = True) -> dict[str, Any]:
    """A number, its standard error, the model's own doubt about it and how it was found."""
    facts = {"value": plain(value), "standard_error": standard_error(value)}
    if doubts:
        facts["doubt"] = plain(own_doubt(value))
    return {**facts, "method": getattr(value, "method", "exact")}


def variable_facts(variable: Variable) -> dict[str, Any]:
    """What a model knows of a column: its kind, levels, atoms, bounds and who said so, the precision of its numbers,
    and whether it is context.
    """
    facts: dict[str, Any] = {"name": variable.name, "kind": variable.kind, "levels": list(variable.levels)}
    if variable.atoms:
        facts["atoms"] = list(variable.atoms)
    if variable.bounds != (None, None):
        facts["bounds"] = list(variable.bounds)
        facts["bounds_are"] = "declared" if variable.declared else "recognised"
    if variable.step:
        facts["step"] = variable.step
    if variable.context:
        facts["context"] = "may be unknown" if variable.optional else "always known"
    plain_facts: dict[str, Any] = plain(facts)
    return plain_facts
