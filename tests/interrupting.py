"""Train, be interrupted by a signal that Python handles, look at what is left, go on: as killing.py.

    python interrupting.py FOLDER SIGNAL WHEN TIMES SEED

SIGNAL is SIGINT, which raises KeyboardInterrupt, or SIGTERM, for which the program has a handler that raises
SystemExit. WHEN is "random", at any moment, or "call", at a call that changes the disk: then nothing
half-written may be left.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sys
import threading
from functools import partial
from typing import Any

from killing import CALLS, EPOCHS, in_child, look, rows, train

INTERRUPTED = 75


def until_interrupted(number: int, at_call: int | None, after: float, folder: str, order: str) -> None:
    """Train; ends with INTERRUPTED where the signal has come."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    if at_call is None:
        timer = threading.Timer(after, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()
    else:
        interrupt_at(at_call, number)
    try:
        train(folder, order)
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.flush()
        os._exit(INTERRUPTED)


def interrupt_at(at_call: int, number: int) -> None:
    """Have the at_call-th call that changes the disk interrupted when it has been made."""
    left = [at_call]

    def wrap(call: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(number)
            return answer

        return counted

    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))


def unfinished(folder: str) -> list[str]:
    """What is in the work folder and belongs to no finished checkpoint."""
    work = os.path.join(folder, ".spinstat")
    names = os.listdir(work) if os.path.isdir(work) else []
    return [
        name
        for name in names
        if name.startswith("tmp-") or (re.fullmatch(r"c\d+", name) and f"{name}.json" not in names)
    ]


def main(base: str, name: str, when: str, times: int, seed: int) -> None:
    chance = random.Random(seed)
    number = int(getattr(signal, name))
    reference = os.path.join(base, "reference")
    assert in_child(partial(train, reference, "save first")) == 0
    want = rows(reference)
    assert len(want) == EPOCHS + 1
    done = runs = 0
    while done < times:
        folder = os.path.join(base, str(runs))
        order = ("save first", "log first")[runs % 2]
        while True:
            at_call = chance.randrange(1, 250) if when == "call" else None
            work = partial(until_interrupted, number, at_call, chance.uniform(0.0, 0.4), folder, order)
            code = in_child(work if done < times else partial(train, folder, order))
            if code == 0:
                break
            assert code == INTERRUPTED, f"{folder}: exit code {code}"
            done += 1
            look(folder)
            if when == "call":
                assert unfinished(folder) == [], f"{folder}, call {at_call}: {unfinished(folder)}"
        assert rows(folder) == want, f"{folder}:\n{rows(folder)}\ninstead of\n{want}"
        shutil.rmtree(folder)
        runs += 1
    print(f"{done} interruptions in {runs} runs")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
