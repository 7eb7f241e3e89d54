"""The command line: plain functions, one file each, the same words as in Python.

Every function turns text into arguments, calls the library once and prints the result; results go to standard output,
remarks to standard error. A new command is a new file here and one entry in the list below.
"""

from __future__ import annotations

from anyorder.cli.anomalies import anomalies
from anyorder.cli.app import app, main
from anyorder.cli.ask import ask
from anyorder.cli.check import check
from anyorder.cli.compress import compress, decompress
from anyorder.cli.demo import demo
from anyorder.cli.demo_images import demo_images
from anyorder.cli.fill import fill
from anyorder.cli.fit import fit
from anyorder.cli.fit_images import fit_images
from anyorder.cli.fit_text import fit_text
from anyorder.cli.info import info
from anyorder.cli.interview import interview
from anyorder.cli.next import next_
from anyorder.cli.sample import sample
from anyorder.cli.score import score

__all__ = ["app", "main"]

for _command in (
    fit,
    fit_text,
    fit_images,
    ask,
    sample,
    fill,
    score,
    check,
    anomalies,
    next_,
    interview,
    compress,
    decompress,
    info,
    demo,
    demo_images,
):  # in the order in which --help lists them
    app.command(_command.__name__.strip("_").replace("_", "-"))(_command)
