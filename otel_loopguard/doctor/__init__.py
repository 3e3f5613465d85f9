"""The doctor: what a guard can and cannot see of recorded spans, or of those of a process."""

from __future__ import annotations

from otel_loopguard.doctor.examination import Examination, examine
from otel_loopguard.doctor.files import examine_file
from otel_loopguard.doctor.finding import Finding, Severity
from otel_loopguard.doctor.live import Doctor
from otel_loopguard.doctor.report import Report, report_on
from otel_loopguard.doctor.sightings import ScopeSeen, Seen, Sighting

__all__ = [
    "Doctor",
    "Examination",
    "Finding",
    "Report",
    "ScopeSeen",
    "Seen",
    "Severity",
    "Sighting",
    "examine",
    "examine_file",
    "report_on",
]
