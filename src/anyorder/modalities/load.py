"""Reading a model file of any modality."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from anyorder.errors import UserError
from anyorder.model.checkpoint import load_model
from anyorder.support.boundary import reading
from anyorder.support.devices import chosen_device

if TYPE_CHECKING:
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.tables.model import TableModel
    from anyorder.modalities.texts.model import TextModel

# By modality; imported when a file of it is read, since a question to one kind of model need not wait for the others.
FACES = {"table": "tables.model.TableModel", "text": "texts.model.TextModel", "images": "images.model.ImageModel"}


def load(
    path: str | Path, device: str = "cpu", *, signed_by: str | Path | None = None
) -> TableModel | TextModel | ImageModel:
    """Read a model file, of a table, of texts or of pictures.

    Answers are bit-identical to those before saving. Files of earlier releases are read as well; a damaged file, or one
    of a newer release, is refused by name.

    Parameters
    ----------
    path
        What ``save`` or ``anyorder fit`` wrote.
    device
        Where the model computes: ``"cpu"``, ``"cuda"``, ...; ``"auto"`` takes a graphics processor where there is one.
    signed_by
        A public key of minisign, or the path of its ``.pub`` file. The model is loaded only if the signature beside it
        (``path`` + ``.minisig``) was made with that key for these very bytes. Needs the extra ``signed``.

    Returns
    -------
    TableModel, TextModel or ImageModel

    Examples
    --------
    >>> model.save(folder / "again.anyorder")
    >>> ao.load(folder / "again.anyorder").log_prob(frame).equals(model.log_prob(frame))
    True
    """
    core, card = load_model(path, device=str(chosen_device(device)), signed_by=signed_by)
    modality = card.get("modality")
    if not isinstance(modality, str) or modality not in FACES:
        raise UserError(
            f"{path} holds a model of the modality {modality!r:.80}, which this release does not know; upgrade anyorder"
        )
    with reading(str(path)):
        return face_of(modality).of_file(core, card)


def face_of(modality: str) -> type[TableModel | TextModel | ImageModel]:
    """The class of the models of a modality in :data:`FACES`."""
    module, _, name = FACES[modality].rpartition(".")
    face: type[TableModel | TextModel | ImageModel] = getattr(
        importlib.import_module(f"anyorder.modalities.{module}"), name
    )
    return face
