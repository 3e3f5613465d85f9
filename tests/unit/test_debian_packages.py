"""Programs of Debian's packages are found, or it is said what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts import debian_packages
from scripts.debian_packages import MissingProgramsError, programs


def test_a_program_on_the_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine = tmp_path / "promtool"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert programs("promtool") == {"promtool": mine}


def test_a_program_under_debians_own_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = tmp_path / "no-such-program-by-debian"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(debian_packages.PACKAGE_OF_PROGRAM, "no-such-program", "no-such-package")
    monkeypatch.setitem(debian_packages.OTHER_NAMES, "no-such-program", (other.name,))

    assert programs("no-such-program") == {"no-such-program": other}


def test_a_program_that_no_package_is_known_for_is_refused():
    with pytest.raises(ValueError, match="no Debian package is known for 'promtol': expected"):
        programs("promtol")


def test_who_may_not_install_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(debian_packages.PACKAGE_OF_PROGRAM, "no-such-program", "no-such-package")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(MissingProgramsError, match="sudo apt-get install no-such-package"):
        programs("promtool", "no-such-program") if debian_packages.find("promtool") else programs(
            "no-such-program"
        )
