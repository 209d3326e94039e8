"""Makes the images of docs/ again, all or those that are named: curves, console, tensorboard.

    python docs/images/make.py console

It takes some minutes, needs what requirements-demo.txt has, and for tensorboard the package websocket-client
and the program chromium. The runs are made in runs/images; those that are there are drawn again.
"""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

IMAGES = Path(__file__).resolve().parent
ROOT = IMAGES.parent.parent
RUNS = ROOT / "runs" / "images"
PATIENCE = 120  # seconds for a page of TensorBoard


def train() -> None:
    """Three seeds of the demo's algorithm, for as long as its curve takes to level off."""
    for seed in range(3):
        run_dir = RUNS / f"ppo_s{seed}"
        if not run_dir.exists():
            options = ["--seed", str(seed), "--output_dir", str(run_dir), "--epochs", "30"]
            options += ["--target_return", "1e9", "--sinks", "tensorboard"]
            subprocess.run([sys.executable, ROOT / "examples" / "ppo.py", *options], check=True)


def curves() -> None:
    train()
    command = [sys.executable, "-m", "spinstat.run", "plot", f"{RUNS}/", "-y", "Performance", "Entropy"]
    subprocess.run([*command, "--out", IMAGES / "curves.png"], check=True)


def console() -> None:
    """The program of docs/console.md on a terminal: two of its rows, as rich draws terminals."""
    from rich.console import Console
    from rich.text import Text

    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(# search\.py\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert program is not None
    rows = on_a_terminal(program[1]).split("\x1b[1m")
    starts = [at for at, part in enumerate(rows) if re.match(r"\d+ of \d+ epochs", part)]
    text = "\x1b[1m" + "\x1b[1m".join(rows[starts[8] : starts[10]]).rstrip()
    recorder = Console(record=True, width=52, file=open(os.devnull, "w"))
    recorder.print(Text.from_ansi("$ python search.py\n...\n" + text))
    svg = recorder.export_svg(title="search.py")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # nothing is fetched to show it
    (IMAGES / "console.svg").write_text(svg, encoding="utf-8")


def on_a_terminal(program: str) -> str:
    """What a program prints on a terminal of 80 columns."""
    with tempfile.TemporaryDirectory() as folder:
        master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
        child = subprocess.Popen([sys.executable, "-c", program], cwd=folder, env=env, stdout=slave)
        os.close(slave)
        printed = b""
        while True:
            try:
                printed += os.read(master, 65536)
            except OSError:  # the program has ended
                break
        os.close(master)
        assert child.wait() == 0
    return printed.decode().replace("\r\n", "\n")


# What makes room for charts on TensorBoard's first page: no table under each, no settings beside them.
MAKE_ROOM = """(() => {
    const table = [...document.querySelectorAll('mat-checkbox')]
        .find(box => box.textContent.includes('Enable step selection'));
    const settings = document.querySelector('.settings-button');
    if (!table || !settings) return false;
    table.querySelector('input').click();
    settings.click();
    return true;
})()"""

# Whether all charts that can be seen have the lines of three runs.
DRAWN = """(() => {
    const seen = [...document.querySelectorAll('line-chart')]
        .filter(chart => chart.getBoundingClientRect().top < innerHeight);
    const lines = chart => [...chart.querySelectorAll('path')]
        .filter(path => (path.getAttribute('d') || '').split('L').length > 20).length;
    return seen.length >= 4 && seen.every(chart => lines(chart) == 3);
})()"""


def tensorboard() -> None:
    """The three runs on TensorBoard's first page, in a browser."""
    train()
    options = ["--logdir", RUNS, "--host", "127.0.0.1", "--port", "6123"]
    server = subprocess.Popen([Path(sys.executable).with_name("tensorboard"), *options])
    try:
        wait_for(lambda: urllib.request.urlopen("http://127.0.0.1:6123/data/runs").status == 200)
        tags = quote("^(AverageEpRet|MinEpRet|AverageVVals|Entropy|LossV|values/EpRet)$")
        url = f"http://127.0.0.1:6123/?tagFilter={tags}&smoothing=0#timeseries"
        (IMAGES / "tensorboard.png").write_bytes(screenshot(url, 1200, 800))
    finally:
        server.terminate()
        server.wait()


def screenshot(url: str, width: int, height: int) -> bytes:
    """A PNG of a page, once it is drawn."""
    import websocket

    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-3d-apis", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["chromium", *options, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            where = Path(profile, "DevToolsActivePort")
            wait_for(lambda: where.exists() and len(where.read_text().split()) == 2)
            port = where.read_text().split()[0]
            pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            connection = websocket.create_connection(address, timeout=PATIENCE)

            def call(method: str, **params: Any) -> Any:
                connection.send(json.dumps({"id": 1, "method": method, "params": params}))
                while True:
                    message = json.loads(connection.recv())
                    if message.get("id") == 1:
                        return message["result"]

            def evaluate(expression: str) -> Any:
                return call("Runtime.evaluate", expression=expression)["result"].get("value")

            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            call("Emulation.setDeviceMetricsOverride", **size)
            call("Page.navigate", url=url)
            wait_for(lambda: evaluate(MAKE_ROOM))
            time.sleep(3)  # in which the charts move
            wait_for(lambda: evaluate(DRAWN))
            time.sleep(3)  # for histograms, and what moves at the end
            return base64.b64decode(call("Page.captureScreenshot", format="png")["data"])
        finally:
            browser.terminate()
            browser.wait()


def wait_for(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if condition():
                return
        except OSError:  # a server that does not answer yet
            pass
        if time.monotonic() > end:
            raise TimeoutError("it takes too long: look at what it prints")
        time.sleep(0.3)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["curves", "console", "tensorboard"]:
        {"curves": curves, "console": console, "tensorboard": tensorboard}[name]()
