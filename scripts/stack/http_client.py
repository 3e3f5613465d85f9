"""Questions to the programs of the stack, over HTTP on loopback, answered in JSON."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

T = TypeVar("T")
LIMIT_S = 10
# A proxy of the environment must not be asked for what is on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NoAnswerError(OSError):
    """Nothing was answered; a later question may be."""


def is_ready(address: str) -> bool:
    """Whether an address answers, and well."""
    try:
        with _OPENER.open(address, timeout=LIMIT_S):
            return True
    except (OSError, HTTPException):
        return False


def ask(
    address: str, kind: type[T], parameters: Mapping[str, str | Sequence[str]] | None = None
) -> T:
    """What an address answers, as the type says.

    Raises:
        NoAnswerError: it does not answer in time, or cannot just now.
        RuntimeError: it refuses the question; the message has its words.

    """
    question = f"{address}?{urlencode(parameters, doseq=True)}" if parameters else address
    try:
        with _OPENER.open(question, timeout=LIMIT_S) as answer:
            return msgspec.json.decode(answer.read(), type=kind)
    except urllib.error.HTTPError as error:
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise NoAnswerError(f"{question} was answered with {error.code}") from error
        said = error.read().decode(errors="replace")
        raise RuntimeError(f"{question} was refused with {error.code}: {said}") from error
    except (OSError, HTTPException) as error:
        raise NoAnswerError(f"{question} was not answered: {error!r}") from error
