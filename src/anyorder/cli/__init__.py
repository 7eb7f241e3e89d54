"""The command line: plain functions with the same words as in Python.

Every function turns text into arguments, calls the library once and prints the result. Results go to standard output,
remarks to standard error. A command for one kind of model is a file of its own. A command for every kind is a function
in each of :mod:`.tables`, :mod:`.texts` and :mod:`.images`, joined by :mod:`.by_modality`. Both are listed below.
"""

from __future__ import annotations

from collections.abc import Callable

from anyorder.cli.anomalies import anomalies
from anyorder.cli.app import app, main
from anyorder.cli.ask import ask
from anyorder.cli.by_modality import by_modality
from anyorder.cli.check import check
from anyorder.cli.demos.commands import demo, demo_images, demo_text
from anyorder.cli.doctor import doctor
from anyorder.cli.examples import SHOWN
from anyorder.cli.fit import fit
from anyorder.cli.fit_images import fit_images
from anyorder.cli.fit_text import fit_text
from anyorder.cli.interview import interview
from anyorder.cli.look import look
from anyorder.cli.next import next_
from anyorder.cli.paths import check_apart
from anyorder.cli.plan import plan
from anyorder.cli.predict import predict
from anyorder.cli.serve import serve
from anyorder.cli.signatures import with_check
from anyorder.cli.update import update

__all__ = ["app", "main"]

# In the order in which --help lists them.
COMMANDS: dict[str, Callable[..., None]] = {
    "look": look,
    "fit": fit,
    "fit-text": fit_text,
    "fit-images": fit_images,
    "update": update,
    "plan": plan,
    "ask": ask,
    "sample": by_modality(
        "sample", "Draw rows, texts or pictures: the same ones each time, others with another --seed."
    ),
    "fill": by_modality("fill", "Fill in what is unknown; what is known stays as it is."),
    "score": by_modality("score", "Score data: how likely it is under the model."),
    "predict": predict,
    "check": check,
    "anomalies": anomalies,
    "next": next_,
    "interview": interview,
    "serve": serve,
    "compress": by_modality("compress", "Compress a file with the model; decompress needs the same model."),
    "decompress": by_modality("decompress", "Restore what compress wrote with this model."),
    "info": by_modality("info", "Show what is in a model file."),
    "doctor": doctor,
    "demo": demo,
    "demo-images": demo_images,
    "demo-text": demo_text,
}

for _name, _command in COMMANDS.items():
    _shown = SHOWN[_name]
    app.command(_name, short_help=_shown.short, epilog=_shown.epilog)(with_check(_command, check_apart))
