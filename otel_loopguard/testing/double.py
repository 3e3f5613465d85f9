"""What the models in process have in common, and their ways into frameworks."""

from __future__ import annotations

import asyncio
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from types import NoneType
from typing import TYPE_CHECKING, cast

import msgspec
from opentelemetry.trace import TracerProvider

from otel_loopguard.model_turns import ModelTurn, ToolCall
from otel_loopguard.testing.client_span import client_span, note_turn
from otel_loopguard.testing.scripts import OfferedTool

if TYPE_CHECKING:
    from agents import Model
    from langchain_core.language_models import BaseChatModel
    from pydantic_ai.models.function import FunctionModel


class ModelRefusedError(RuntimeError):
    """A model was told to answer no more. No client or framework takes it for a passing error."""


class Double(ABC):
    """What the models here have in common: they count, can be refused, and look at nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What errors and frameworks call it."""
        self._lock = threading.Lock()
        self._calls = 0
        self._refusal: str | None = None
        # A random part, because ids must differ between models too.
        self._prefix = secrets.token_hex(4)

    @property
    def calls(self) -> int:
        """How often it was asked so far, in vain or not."""
        return self._calls

    def refuse(self, reason: str) -> None:
        """Raise `ModelRefusedError`, with this reason, whenever it is asked from now on."""
        self._refusal = reason

    def __call__(self, *args: object, **_kwargs: object) -> ModelTurn:
        """Return the next turn, whatever it is called with.

        Tools that the first argument offers as its `tools`, as a `TurnRequest` does, are offered.
        """
        return self.answer(_offered_by(args))

    async def awaited(self, *args: object, **_kwargs: object) -> ModelTurn:
        """Return the next turn likewise, for loops that await their model."""
        await let_others_run()
        return self.answer(_offered_by(args))

    def answer(self, offered: Sequence[OfferedTool] = ()) -> ModelTurn:
        """Return the next turn for a model call that offers these tools; for adapters."""
        with self._lock:
            self._calls += 1
            number = self._calls
        if self._refusal is not None:
            raise ModelRefusedError(f"{self!r} refused call {number}: {self._refusal}")
        turn = self._turn(number, offered)
        return msgspec.structs.replace(
            turn,
            calls=tuple(
                # A copy, because tools may change what they are called with.
                ToolCall(
                    name=call.name,
                    arguments=deepcopy(call.arguments),
                    call_id=call.call_id or f"call_{self._prefix}_{number}_{index}",
                )
                for index, call in enumerate(turn.calls)
            ),
        )

    def answer_a_client(
        self, offered: Sequence[OfferedTool], tracer_provider: TracerProvider | None
    ) -> ModelTurn:
        """Return the next turn, in a span if no other shows the call; for adapters."""
        with client_span(self.name, tracer_provider) as span:
            turn = self.answer(offered)
            note_turn(span, turn)
            return turn

    def pydantic_ai(self, tracer_provider: TracerProvider | None = None) -> FunctionModel:
        """Return it as a model of Pydantic AI, plain and streaming."""
        from otel_loopguard.testing.pydantic_ai_model import PydanticAIDouble  # noqa: PLC0415

        return PydanticAIDouble(self, tracer_provider)

    def langchain(self, tracer_provider: TracerProvider | None = None) -> BaseChatModel:
        """Return it as a chat model of LangChain, plain, awaited and streaming."""
        from otel_loopguard.testing.langchain_model import LangChainDouble  # noqa: PLC0415

        return LangChainDouble(double=self, tracer_provider=tracer_provider)

    def openai_agents(self, tracer_provider: TracerProvider | None = None) -> Model:
        """Return it as a model of the OpenAI Agents SDK, plain and streaming."""
        from otel_loopguard.testing.openai_agents_model import OpenAIAgentsDouble  # noqa: PLC0415

        return OpenAIAgentsDouble(self, tracer_provider)

    @abstractmethod
    def _turn(self, number: int, offered: Sequence[OfferedTool]) -> ModelTurn: ...


async def let_others_run() -> None:
    """Let the event loop go round once: an endless run would else keep a timeout from ending it."""
    await asyncio.sleep(0)


def _offered_by(args: tuple[object, ...]) -> list[OfferedTool]:
    tools: object = getattr(args[0], "tools", None) if args else None
    if not isinstance(tools, (list, tuple)):
        return []
    read = (_offered_in(each) for each in cast("Iterable[object]", tools))
    return [each for each in read if each is not None]


def _offered_in(tool: object) -> OfferedTool | None:
    """Return a tool that is offered, if it has the shape of one; nothing else is looked at."""
    name, parameters = getattr(tool, "name", None), getattr(tool, "parameters", None)
    if not isinstance(name, str) or not isinstance(parameters, (Mapping, NoneType)):
        return None
    return OfferedTool(name=name, parameters=cast("Mapping[str, object]", parameters or {}))
