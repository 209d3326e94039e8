"""The notice of long waits."""

from __future__ import annotations

import time

import pytest

from spinstat.watchdog import Watchdog


@pytest.fixture
def watchdog(monkeypatch: pytest.MonkeyPatch) -> Watchdog:
    monkeypatch.setenv("SPINSTAT_NOTICE_SECONDS", "0.2")
    return Watchdog()


def wait_for_text(capsys: pytest.CaptureFixture[str]) -> str:
    """What appears on stderr, at the latest after ten seconds."""
    text = ""
    for _ in range(200):
        time.sleep(0.05)
        text += capsys.readouterr().err
        if text:
            time.sleep(0.5)
            return text + capsys.readouterr().err
    return text


def test_a_long_wait_is_told_once(watchdog: Watchdog, capsys: pytest.CaptureFixture[str]) -> None:
    with watchdog.during(lambda: "rank 1 of 2 is in log_tabular('X')"):
        text = wait_for_text(capsys)
    assert text == "spinstat: waiting for other ranks for 0.2 s: rank 1 of 2 is in log_tabular('X')\n"


def test_each_long_wait_is_told(watchdog: Watchdog, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second"):
        with watchdog.during(lambda name=name: name):  # type: ignore[misc]
            assert name in wait_for_text(capsys)


def test_short_waits_are_not_told(watchdog: Watchdog, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(1000):
        watchdog.begin(lambda: "short")
        watchdog.end()
    time.sleep(0.5)
    assert capsys.readouterr().err == ""


def test_a_wait_that_an_exception_ends_is_over(
    watchdog: Watchdog, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyError), watchdog.during(lambda: "failed"):
        raise KeyError
    time.sleep(0.5)
    assert capsys.readouterr().err == ""


def test_there_is_no_thread_before_the_first_wait() -> None:
    assert Watchdog()._thread is None


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_setting_that_is_no_number_of_seconds_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINSTAT_NOTICE_SECONDS", text)
    with pytest.raises(ValueError, match=f"SPINSTAT_NOTICE_SECONDS={text}"):
        Watchdog().begin(lambda: "")
