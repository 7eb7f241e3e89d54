"""The explorer in a notebook: a widget whose questions go over its own messages, and whose state Python can read.

:func:`anyorder.explore` and ``model.explore()`` make one. It needs the extra ``notebook``. What is said by clicking is
in ``widget.given`` as :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>` takes it, and what
is put there shows on the page. A question is a message ``{id, path, method, type, accept, body}``, in which a file is
``file`` in base64 in place of ``body``; its answer is ``{id, status}`` with the bytes that HTTP would have sent.
``{id, drop: true}`` drops it (``explorer/messages.js``).
"""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import traitlets
from pydantic import TypeAdapter

from anyorder.explorer.module import one_module
from anyorder.serve.errors import unexpected
from anyorder.serve.in_process import InProcess, Reply
from anyorder.serve.statements import Given, evidence_of, statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyorder.modalities.face import FittedModel

_GIVEN: TypeAdapter[Any] = TypeAdapter(Given)


class Explorer(anywidget.AnyWidget):
    """The explorer as a widget for Jupyter, VS Code, marimo and whatever else shows anywidgets.

    Parameters
    ----------
    models
        By name.
    given, target
        What is known at the beginning, and the column to learn about.
    height
        Pixels, beyond which it scrolls; None for as high as it is.

    Attributes
    ----------
    given : dict
        What is known now, by column; set it to change the page.
    target : str or None
        The target that was chosen.
    model : str
        The name of the model that is shown.
    """

    _esm: ClassVar[str] = one_module("notebook.js")

    model = traitlets.Unicode().tag(sync=True)
    given = traitlets.Dict().tag(
        sync=True,
        to_json=lambda given, _: statements_of(given),
        from_json=lambda said, _: evidence_of(_GIVEN.validate_python(said)),
    )
    target = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    height = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(
        self,
        models: Mapping[str, FittedModel],
        *,
        given: Mapping[str, Any] | None = None,
        target: str | None = None,
        height: int | None = None,
    ) -> None:
        self._answers = InProcess(models)
        self._asked: dict[str, Future[Reply]] = {}
        super().__init__(model=next(iter(models)), given=dict(given or {}), target=target, height=height)
        self.on_msg(self._heard)

    def _heard(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the page: a question, or that nobody waits for one any more."""
        identity = str(content.get("id"))
        if content.get("drop"):
            if (asked := self._asked.pop(identity, None)) is not None:
                asked.cancel()
            return
        future = self._answers.ask(
            str(content.get("path")),
            method=str(content.get("method", "GET")),
            body=base64.b64decode(content["file"]) if "file" in content else content.get("body"),
            kind=str(content.get("type", "application/json")),
            accept=str(content.get("accept", "application/json")),
        )
        self._asked[identity] = future
        # A kernel sends from its own loop, where there is one; elsewhere, as in tests, whoever has the answer sends it.
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None

        def answered(done: Future[Reply]) -> None:
            if loop is None:
                self._reply(identity, done)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(self._reply, identity, done)

        future.add_done_callback(answered)

    def _reply(self, identity: str, done: Future[Reply]) -> None:
        if self._asked.pop(identity, None) is None or self.comm is None:  # dropped, or the widget was closed
            return
        try:
            reply = done.result()
        except (CancelledError, asyncio.CancelledError):
            return
        except Exception as error:  # noqa: BLE001 (whatever went wrong, whoever asked is told)
            reply = Reply.of(unexpected(error))
        self.send({"id": identity, "status": reply.status}, [reply.content])

    def close(self) -> None:
        """Take the widget off the page, drop what was asked, and end the threads that answer."""
        if hasattr(self, "_answers"):
            self._asked.clear()
            self._answers.close()
        super().close()
