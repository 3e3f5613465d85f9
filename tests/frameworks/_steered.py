"""A model that goes round in circles until it is given a hint."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from otel_loopguard.testing import ModelServer
from otel_loopguard.testing._loopback import serving
from otel_loopguard.testing.http_exchange import HttpAnswer, HttpRequest
from otel_loopguard.testing.model_application import ModelApplication
from otel_loopguard.testing.scripts import script_named

HINT = "LOOK ELSEWHERE"
"""What it listens to."""


class Steered(ModelApplication):
    """Plays `endless`, until a request has the hint in it: then it answers."""

    def __init__(self) -> None:
        super().__init__(script_named("endless"), strict=True, cap=40)
        self.heard: list[int] = []
        """How often the hint stood in each request."""

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        self.heard.append(request.body.decode().count(HINT))
        if self.heard[-1]:
            self.script = script_named("finish3")
        return await super().answer(request)


@contextmanager
def steered() -> Generator[tuple[ModelServer, Steered]]:
    """Serve such a model on loopback, for any name that is no script's."""
    model = Steered()
    with serving(model, name="loopguard-steered-model") as root:
        yield ModelServer(root, model), model
