"""Several threads: shared work with the same bits, a shared state, and the interpreter left to others."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from spinstat import Moments, moments

CHUNK = 1 << 20  # elements; a threaded reduction is cut at multiples of it


@pytest.mark.parametrize("threads", [0, -1])
def test_the_number_of_threads_is_positive(threads: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        moments([1.0], threads=threads)
    with pytest.raises(ValueError, match="threads"):
        Moments().update([1.0], threads=threads)


def test_the_number_of_threads_is_an_integer() -> None:
    for threads in ("2", 1.5, None):
        with pytest.raises((TypeError, ValueError), match="threads"):
            moments([1.0], threads=threads)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "f2", ">f8"])
@pytest.mark.parametrize("n", [0, 1, 1000, CHUNK, CHUNK + 1, 3 * CHUNK + 12345])
def test_the_bits_do_not_depend_on_threads(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).normal(100, 30, n).astype(dtype)
    start = Moments([0.1, 7.0])
    states = set()
    for threads in (1, 2, 3, 8, 64):
        m = start.copy()
        m.update(x, threads=threads)
        states.add(m.to_bytes())
        assert m.count == n + 2
    assert len(states) == 1
    assert moments(x[::2], threads=1).to_bytes() == moments(x[::2], threads=3).to_bytes()


def test_threads_may_update_one_and_the_same() -> None:
    m = Moments()
    x = np.arange(50_000.0)

    def work() -> None:
        for _ in range(40):
            m.update(x)
            m.update(1.0)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert m.count == 4 * 40 * 50_001
    assert m.mean == pytest.approx((50_000 * 24_999.5 + 1) / 50_001, rel=1e-12)


def test_a_large_buffer_is_reduced_without_the_gil() -> None:
    x = np.ones(4_000_000)
    order: list[str] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # so that another thread runs only where this one lets go by itself
    try:
        for _ in range(50):
            gate = threading.Lock()
            gate.acquire()
            other = threading.Thread(target=lambda gate=gate: (gate.acquire(), order.append("other")))
            other.start()
            gate.release()
            moments(x)
            order.append("reduced")
            other.join()
            if order[-2:] == ["other", "reduced"]:
                break
    finally:
        sys.setswitchinterval(interval)
    assert order[-2:] == ["other", "reduced"]


def test_threads_that_go_on_after_an_interrupt_have_the_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two interrupts ends the wait for the threads, which read on."""
    running = []

    class Interrupted:
        """A pool whose threads are still at work when the wait for them is interrupted."""

        def __init__(self, threads: int) -> None: ...

        def __enter__(self) -> Interrupted:
            return self

        def submit(self, work: object, first: int) -> None:
            running.append(work)
            raise KeyboardInterrupt

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Interrupted)
    memory = bytearray(8 * 2 * CHUNK)
    with pytest.raises(KeyboardInterrupt):
        moments(memoryview(memory).cast("d"), threads=2)
    with pytest.raises(BufferError):
        memory.clear()  # would free what the threads read
    running.clear()
    memory.clear()
