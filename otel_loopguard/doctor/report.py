"""What the doctor says: the findings first, then what they come from."""

from __future__ import annotations

import msgspec

from otel_loopguard.doctor.content_findings import content_findings
from otel_loopguard.doctor.finding import Finding
from otel_loopguard.doctor.run_findings import run_findings
from otel_loopguard.doctor.sightings import Seen
from otel_loopguard.doctor.span_findings import span_findings

_ORDER = ("blind", "weak", "ok")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. Its fields are those of the JSON output, in their order."""

    findings: tuple[Finding, ...]
    """The worst ones first."""
    seen: Seen

    def __str__(self) -> str:
        """Return the findings, one a line, each with its remedy."""
        return "\n".join(str(finding) for finding in self.findings)

    @property
    def is_blind(self) -> bool:
        """Whether rules cannot act somewhere."""
        return any(finding.severity == "blind" for finding in self.findings)


def report_on(seen: Seen) -> Report:
    """Return what is to be said of what was seen."""
    found = [*span_findings(seen), *run_findings(seen), *content_findings(seen)]
    ordered = sorted(found, key=lambda finding: _ORDER.index(finding.severity))
    return Report(findings=tuple(ordered), seen=seen)
