"""What ``--help`` shows of every command besides its options: a line for the list of commands, and real examples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    """One command: what it does in a few words (the list of commands cuts off what is longer), and lines to type."""

    short: str
    examples: tuple[str, ...]

    @property
    def epilog(self) -> str:
        """The examples as the last part of the help; the mark keeps the lines as they are."""
        return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in self.examples)


SHOWN = {
    "look": Shown(
        "Look at a table before fitting.",
        (
            "anyorder look houses.csv",
            "anyorder look houses.csv --missing 999 --kind zip=categorical",
        ),
    ),
    "fit": Shown(
        "Fit one model to a table.",
        (
            "anyorder fit houses.csv -o house.anyorder",
            "anyorder fit houses.csv -o house.anyorder --minutes 5 --kind zip=categorical --drop id",
            "anyorder fit houses.csv -o house.anyorder --context rooms,river",
        ),
    ),
    "fit-text": Shown(
        "Fit one model to a text.",
        (
            "anyorder fit-text corpus.txt -o corpus.anyorder",
            "anyorder fit-text corpus.txt -o corpus.anyorder --minutes 60 --preset medium",
        ),
    ),
    "fit-images": Shown(
        "Fit one model to pictures.",
        (
            "anyorder fit-images photos/ -o photos.anyorder --size 32x32",
            "anyorder fit-images digits.npz -o digits.anyorder --minutes 30",
        ),
    ),
    "update": Shown(
        "Let a model of a table learn from new rows.",
        (
            "anyorder update house.anyorder new.csv -o newer.anyorder",
            "anyorder update house.anyorder new.csv -o newer.anyorder --minutes 2 --unseen missing",
        ),
    ),
    "plan": Shown(
        "Plan the run of a paper on a device.",
        (
            "anyorder plan --preset mac_text8 --device A40 --count 8",
            "anyorder plan --preset sfarm_cifar10 --device RTX4090 --recompute --json",
        ),
    ),
    "ask": Shown(
        "Ask a model of a table any question.",
        (
            'anyorder ask house.anyorder "price | rooms=6, river=yes"',
            'anyorder ask house.anyorder "P(price > 30 | rooms=6, age=30..40)"',
            "anyorder ask house.anyorder --queries questions.txt -o answers.csv",
            "anyorder ask house.anyorder     # opens a prompt",
        ),
    ),
    "sample": Shown(
        "Draw rows, texts or pictures.",
        (
            'anyorder sample house.anyorder -n 1000 --given "rooms=6, river=yes" -o draws.csv',
            "anyorder sample house.anyorder --seed 1     # other rows than without --seed",
            "anyorder sample photos.anyorder -n 25 -o grid.png",
        ),
    ),
    "fill": Shown(
        "Fill in what is unknown.",
        (
            "anyorder fill house.anyorder holes.csv -o filled.csv",
            "anyorder fill house.anyorder holes.csv -o filled.csv --draws 20",
            'anyorder fill corpus.anyorder --text "the q__ck br_wn f_x"',
        ),
    ),
    "score": Shown(
        "Score data: how likely is it?",
        (
            "anyorder score house.anyorder test.csv",
            "anyorder score house.anyorder test.csv --given rooms,river --per-row",
        ),
    ),
    "predict": Shown(
        "Predict one column of every row.",
        (
            "anyorder predict house.anyorder new.csv --column price --quantiles 0.05,0.95 -o prices.csv",
            "anyorder predict house.anyorder new.csv --column river --probabilities",
        ),
    ),
    "check": Shown(
        "Check a model on rows it has not seen.",
        (
            "anyorder check house.anyorder held_out.csv",
            "anyorder check house.anyorder held_out.csv --plot calibration.png --repeats 3",
        ),
    ),
    "anomalies": Shown(
        "List surprising cells or rows.",
        (
            "anyorder anomalies house.anyorder houses.csv",
            "anyorder anomalies house.anyorder houses.csv --rows --top 20",
        ),
    ),
    "next": Shown(
        "Rank what is worth measuring next.",
        (
            'anyorder next patients.anyorder --about diagnosis --given "age=48, pressure=80"',
            "anyorder next patients.anyorder --about diagnosis --costs costs.csv --budget 20",
        ),
    ),
    "interview": Shown(
        "Answer the most useful questions first.",
        (
            "anyorder interview patients.anyorder --about diagnosis",
            "anyorder interview patients.anyorder --about diagnosis --transcript case17.json --resume",
        ),
    ),
    "serve": Shown(
        "Answer questions over HTTP.",
        (
            "anyorder serve house.anyorder",
            "anyorder serve house.anyorder prices=other.anyorder --port 8000",
            "anyorder serve --demo",
        ),
    ),
    "compress": Shown(
        "Compress a file with the model.",
        (
            "anyorder compress house.anyorder houses.csv -o houses.aor",
            "anyorder compress corpus.anyorder other.txt -o other.aot",
        ),
    ),
    "decompress": Shown(
        "Restore what compress wrote.",
        (
            "anyorder decompress house.anyorder houses.aor -o houses.csv",
            "anyorder decompress corpus.anyorder other.aot -o other.txt",
        ),
    ),
    "info": Shown(
        "Show what is in a model file.",
        ("anyorder info house.anyorder", "anyorder info house.anyorder --json"),
    ),
    "doctor": Shown(
        "Check the installation.",
        ("anyorder doctor", "anyorder doctor --json > doctor.json"),
    ),
    "demo": Shown(
        "Try it on a table from scikit-learn.",
        ("anyorder demo", "anyorder demo -o report.html --minutes 3"),
    ),
    "demo-images": Shown(
        "Try it on scikit-learn's digits.",
        ("anyorder demo-images", "anyorder demo-images -o digits.png --minutes 5"),
    ),
    "demo-text": Shown(
        "Try it on Python's own help pages.",
        ("anyorder demo-text", "anyorder demo-text -o fills.png --minutes 3"),
    ),
}
