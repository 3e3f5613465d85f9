"""A scripted model on loopback, for any client in any language.

    with model_server("endless") as server:
        client = openai.OpenAI(base_url=server.url, api_key="none")
        ...
        assert server.count() == 5

The model's name in a request picks the script where it names one, so that one server plays a
runaway and a healthy run at once; the server's own script plays every other model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from os import PathLike

from otel_loopguard.testing._loopback import serving
from otel_loopguard.testing._routes import FORMATS
from otel_loopguard.testing.model_application import ModelApplication, ModelRequest
from otel_loopguard.testing.scripts import Script, Turn, script_from

__all__ = ["FORMATS", "ModelRequest", "ModelServer", "model_server"]


class ModelServer:
    """A running scripted model: where it is, what it was asked, and what it plays."""

    def __init__(self, root: str, model: ModelApplication) -> None:
        """Watch the requests that this model has at this address."""
        self._root = root
        self._model = model

    @property
    def url(self) -> str:
        """The base address for OpenAI clients, `/v1` included."""
        return f"{self._root}/v1"

    @property
    def root(self) -> str:
        """The base address for clients that add the version themselves: Anthropic's, Gemini's."""
        return self._root

    @property
    def requests(self) -> list[ModelRequest]:
        """The model requests so far, in the order of arrival, refused ones included.

        Of more than 100,000 it is the last ones.
        """
        return list(self._model.requests)

    @property
    def tool_results(self) -> int:
        """How many different tool results came in: the executions, as the model saw them.

        A result that later requests repeat counts once, by the id of its call.
        """
        return self._model.tool_results

    def count(self, script: str | None = None) -> int:
        """Count the model requests so far: all of them, or those of one script."""
        return self._model.counts[script]

    def play(self, script: str | PathLike[str] | Script | Sequence[Turn]) -> None:
        """Play this script from now on, to every model whose name is no script's.

        It is what `model_server` takes, begins with its first turn, and ends what `refuse` began.
        Raises `ValueError` for a script that cannot be played.
        """
        self._model.play(script_from(script))

    def refuse(self, reason: str) -> None:
        """Refuse every request from now on with HTTP 400, which clients do not retry.

        A runaway that nothing else stops ends by it. `reason` is the text of the error.
        """
        self._model.refuse(reason)


@contextmanager
def model_server(
    script: str | PathLike[str] | Script | Sequence[Turn] = "endless",
    *,
    strict: bool = True,
    cap: int | None = None,
    port: int = 0,
    on_request: Callable[[ModelRequest], object] | None = None,
    on_wrong_path: Callable[[str], object] | None = None,
) -> Generator[ModelServer]:
    """Serve a scripted model on 127.0.0.1 until the block is left.

    `script` is the name of one, the path of a script file, or the turns themselves. `strict`
    refuses a history in which a tool call has no result with its id, or a result no call, as
    providers do. `cap` bounds the requests of each script: what comes after them is answered with
    HTTP 400, which clients do not retry. `port` is a free one where it is 0. `on_request` is called
    with each model request as it is answered; `on_wrong_path` with the text that any other request
    is answered with, which is none of the model's and not counted: both on the server's thread.
    What they raise, and what a script raises, the client is told with HTTP 400 or 404. Raises
    `ValueError` for a script that cannot be played, a cap that is no positive number and a port
    that cannot be, `OSError` for a port that cannot be had.
    """
    if cap is not None and (isinstance(cap, bool) or cap < 1):
        raise ValueError(
            f"cap={cap!r} is no bound; expected a whole number of requests from 1, or None"
        )
    model = ModelApplication(
        script_from(script),
        strict=strict,
        cap=cap,
        on_request=on_request,
        on_wrong_path=on_wrong_path,
    )
    with serving(model, name="loopguard-model-server", port=port) as root:
        try:
            yield ModelServer(root, model)
        finally:
            model.refuse("the model server is about to close")
