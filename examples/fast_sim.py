"""A fast simulator whose every step is logged: 1,024 CartPoles and a policy in NumPy.

    python examples/fast_sim.py            ten epochs of 1,000 steps of 1,024 poles, in runs/fast_sim
    python examples/fast_sim.py --share    how much of the time logging takes: epochs with and without it

Millions of steps a second come out of one core, and each of them is logged: the angle of every pole at every
step, the return of every episode (CartPole pays 1 for each step, so that is its length, too). What to do at
such speeds: give `store` arrays, one call a step for all environments, and use `keep_values=False`, so that
only their statistics are kept.

The physics are those of Barto, Sutton and Anderson (1983), with the constants of Gymnasium's CartPole-v1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from spinstat import EpochLogger

Array = np.ndarray[Any, Any]

GRAVITY, FORCE, SECONDS = 9.8, 10.0, 0.02  # m/s^2, N, between two states
POLE, CART, HALF_LENGTH = 0.1, 1.0, 0.5  # kg, kg, m
MASS, MOMENT = POLE + CART, POLE * HALF_LENGTH
FARTHEST, STEEPEST = 2.4, np.radians(12.0)  # beyond them an episode ends
LONGEST = 500  # steps: then it ends, too


class CartPoles:
    """Many poles on carts, advanced together.

    `state` has four rows, with an environment in each column: position and velocity of the cart (m, m/s),
    angle and angular velocity of the pole (rad, rad/s). `lengths` counts the steps of each episode under way.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.uniform(-0.05, 0.05, (4, count))
        self.lengths = np.zeros(count)

    def step(self, right: Array) -> Array:
        """Pushes every cart, to the right where `right` is true; returns which poles have fallen or left."""
        x, speed, angle, spin = self.state
        sine, cosine = np.sin(angle), np.cos(angle)
        push = (np.where(right, FORCE, -FORCE) + MOMENT * spin * spin * sine) / MASS
        angular = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE / MASS * cosine * cosine))
        linear = push - MOMENT / MASS * angular * cosine
        x += SECONDS * speed
        speed += SECONDS * linear
        angle += SECONDS * spin
        spin += SECONDS * angular
        self.lengths += 1
        fallen: Array = (np.abs(x) > FARTHEST) | (np.abs(angle) > STEEPEST)
        return fallen

    def restart(self, ended: Array) -> Array:
        """Puts the poles of the columns `ended` upright; returns how many steps each had lasted."""
        lengths: Array = self.lengths[ended]
        self.state[:, ended] = self.rng.uniform(-0.05, 0.05, (4, len(ended)))
        self.lengths[ended] = 0
        return lengths


class Policy:
    """A network of 16 tanh units that balances most poles, and lets some fall.

    No training: the weights into the units are random, and those out of them such that together they act, for
    small angles, as the four GAINS.
    """

    GAINS = (0.2, 0.5, 8.0, 3.0)

    def __init__(self, seed: int, units: int = 16) -> None:
        self.rng = np.random.default_rng(seed)
        self.inner = self.rng.normal(0, 0.5, (units, 4))
        self.outer = np.linalg.pinv(self.inner.T) @ self.GAINS

    def __call__(self, state: Array) -> Array:
        """Which carts to push to the right, drawn with the network's probabilities."""
        logits = self.outer @ np.tanh(self.inner @ state)
        return self.rng.random(len(logits)) < 1 / (1 + np.exp(-logits))


def simulate(poles: CartPoles, policy: Policy, steps: int, logger: EpochLogger | None) -> None:
    """Advances all poles by `steps` steps, and stores what happens unless `logger` is None."""
    for _ in range(steps):
        fallen = poles.step(policy(poles.state))
        ended = np.flatnonzero(fallen | (poles.lengths >= LONGEST))
        lengths = poles.restart(ended)
        if logger is not None:
            logger.store(Angle=poles.state[2], EpRet=lengths)  # one call a step


def log_epoch(logger: EpochLogger, epoch: int, interacts: int, seconds: float) -> None:
    """One row."""
    with logger.batch():
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("EpRet", with_min_and_max=True)
        logger.log_tabular("Angle", with_min_and_max=True)
        logger.log_tabular("TotalEnvInteracts", interacts * (epoch + 1))
        logger.log_tabular("StepsPerSecond", interacts / seconds)
    logger.dump_tabular()


def measure_share(
    poles: CartPoles, policy: Policy, logger: EpochLogger, epochs: int, steps: int
) -> tuple[float, list[float]]:
    """Steps a second with logging, and the share of the time that logging takes, epoch by epoch.

    Epochs with and without logging take turns: the two of a pair run under the same conditions, and which of
    them comes first changes from pair to pair. What counts as logging is all of it, the rows too.
    """
    shares, rates = [], []
    for epoch in range(epochs):
        seconds = {}
        for logged in (True, False) if epoch % 2 else (False, True):
            start = time.perf_counter()
            simulate(poles, policy, steps, logger if logged else None)
            if logged:
                log_epoch(logger, epoch, steps * len(poles.lengths), time.perf_counter() - start)
            seconds[logged] = time.perf_counter() - start
        shares.append(1 - seconds[False] / seconds[True])
        rates.append(steps * len(poles.lengths) / seconds[True])
    return statistics.median(rates), shares


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1000, help="of every pole, in an epoch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output_dir", default="runs/fast_sim")
    parser.add_argument("--share", action="store_true", help="tell what share of the time logging takes")
    options = parser.parse_args()

    poles, policy = CartPoles(options.envs, options.seed), Policy(options.seed)
    with EpochLogger(options.output_dir, exp_name="fast_sim", keep_values=False) as logger:
        logger.save_config(vars(options))
        if options.share:
            rate, shares = measure_share(poles, policy, logger, options.epochs, options.steps)
            share = statistics.median(shares)
            print(f"{rate / 1e6:.1f} million steps a second; logging takes {share:.1%} of the time")
            return
        for epoch in range(options.epochs):
            start = time.perf_counter()
            simulate(poles, policy, options.steps, logger)
            log_epoch(logger, epoch, options.steps * options.envs, time.perf_counter() - start)


if __name__ == "__main__":
    main()
