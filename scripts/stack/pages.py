"""What Alertmanager has told its receivers, and when."""

from __future__ import annotations

import time
from threading import Lock

import msgspec


class _Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    fingerprint: str


class _Notification(msgspec.Struct, frozen=True, kw_only=True):
    receiver: str
    alerts: list[_Told]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one notification said of one alert, and when it came."""

    at: float
    """Seconds since 1970."""
    receiver: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    fingerprint: str

    @property
    def alert(self) -> str:
        return self.labels["alertname"]


class Pager:
    """The pages so far."""

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._lock = Lock()

    def pages(self, **labels: str) -> list[Page]:
        """The pages whose alert has these labels, oldest first."""
        with self._lock:
            return [page for page in self._pages if labels.items() <= page.labels.items()]

    def told(self, body: bytes) -> int:
        """Take a notification in; returns the HTTP status of the answer."""
        now = time.time()
        notification = msgspec.json.decode(body, type=_Notification)
        with self._lock:
            self._pages.extend(
                Page(
                    at=now,
                    receiver=notification.receiver,
                    status=each.status,
                    labels=each.labels,
                    annotations=each.annotations,
                    fingerprint=each.fingerprint,
                )
                for each in notification.alerts
            )
        return 204
