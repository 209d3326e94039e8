"""Proximal policy optimisation (PPO-clip) in the style of Spinning Up, logged with spinstat.

    python examples/ppo.py                        train on CartPole-v1 until the average return passes 150
    python examples/ppo.py --cpu 2                the same on two MPI ranks: gradients averaged, one log
    python examples/ppo.py --resume               go on with the run in runs/ppo, after a kill for one
    python examples/ppo.py --sinks tensorboard    rows for TensorBoard as well
    python examples/ppo.py --evaluate runs/ppo    reload the policy that a run left and play ten episodes

A run leaves config.json, progress.txt, pyt_save/model.pt, vars.pkl and learning_curve.png in its folder.

Sources: Schulman et al. 2017 (arXiv 1707.06347) for the clipped objective,
Schulman et al. 2016 (arXiv 1506.02438) for generalised advantage estimation.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.distributions import Categorical

from spinstat import EpochLogger, mpi_statistics_scalar
from spinstat.plot import read_run
from spinstat.policy import evaluate, load_policy_and_env
from spinstat.utils.mpi_pytorch import mpi_avg_grads, setup_pytorch_for_mpi, sync_params
from spinstat.utils.mpi_tools import mpi_avg, mpi_fork, num_procs, proc_id

Batch = dict[str, torch.Tensor]


def mlp(widths: Sequence[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers of the given widths with an activation between each two, none after the last."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for width, next_width in itertools.pairwise(widths[1:]):
        layers += [activation(), nn.Linear(width, next_width)]
    return nn.Sequential(*layers)


class MLPActorCritic(nn.Module):
    """A policy `pi` over discrete actions and a value function `v`, networks of the same hidden widths."""

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        hidden_sizes: Sequence[int] = (64, 64),
        activation: type[nn.Module] = nn.Tanh,
    ) -> None:
        super().__init__()
        if not isinstance(action_space, gym.spaces.Discrete):
            raise TypeError(f"this example knows discrete actions only; the action space is {action_space}")
        obs_dim = gym.spaces.flatdim(observation_space)
        self.pi = mlp([obs_dim, *hidden_sizes, int(action_space.n)], activation)
        self.v = nn.Sequential(mlp([obs_dim, *hidden_sizes, 1], activation), nn.Flatten(0))

    def distribution(self, obs: torch.Tensor) -> Categorical:
        """The policy's distribution over actions for a batch of observations, shape (n, obs_dim)."""
        return Categorical(logits=self.pi(obs), validate_args=False)

    @torch.no_grad()
    def step(self, obs: np.ndarray) -> tuple[int, float, float]:
        """Sample for one observation: the action, its value estimate and the action's log-probability."""
        batch = torch.as_tensor(obs, dtype=torch.float32).reshape(1, -1)
        pi = self.distribution(batch)
        act = pi.sample()
        return int(act), float(self.v(batch)), float(pi.log_prob(act))

    @torch.no_grad()
    def act(self, obs: np.ndarray | torch.Tensor, deterministic: bool = False) -> int:
        """The action for one observation: sampled, or the likeliest one."""
        pi = self.distribution(torch.as_tensor(obs, dtype=torch.float32).reshape(1, -1))
        return int(pi.logits.argmax() if deterministic else pi.sample())


class PPOBuffer:
    """The steps of one epoch on one rank, with advantages by GAE(lambda) and discounted returns."""

    def __init__(self, obs_dim: int, size: int, gamma: float, lam: float) -> None:
        self.obs = np.zeros((size, obs_dim), np.float32)
        self.act = np.zeros(size, np.int64)
        self.logp, self.rew, self.val, self.adv, self.ret = np.zeros((5, size), np.float32)
        self.gamma, self.lam, self.size = gamma, lam, size
        self.end = self.path_start = 0

    def store(self, obs: np.ndarray, act: int, rew: float, val: float, logp: float) -> None:
        """Append one step."""
        t = self.end
        self.obs[t], self.act[t], self.rew[t], self.val[t], self.logp[t] = obs.ravel(), act, rew, val, logp
        self.end += 1

    def finish_path(self, last_val: float = 0.0) -> None:
        """Close a trajectory; last_val is the value of the state it was cut in, 0 where the episode ended."""
        adv, ret, next_val = 0.0, last_val, last_val
        for t in reversed(range(self.path_start, self.end)):
            delta = self.rew[t] + self.gamma * next_val - self.val[t]
            adv = delta + self.gamma * self.lam * adv
            ret = self.rew[t] + self.gamma * ret
            self.adv[t], self.ret[t], next_val = adv, ret, self.val[t]
        self.path_start = self.end

    def get(self) -> Batch:
        """The full buffer as tensors, advantages normalised over all ranks; empties the buffer."""
        if self.end != self.size:
            raise ValueError(f"the buffer holds {self.end} of {self.size} steps; fill it before get()")
        self.end = self.path_start = 0
        mean, std = mpi_statistics_scalar(self.adv)
        adv = (self.adv - mean) / max(std, 1e-8)  # spinstat's std of equal values is exactly 0
        arrays = {"obs": self.obs, "act": self.act, "logp": self.logp, "ret": self.ret, "adv": adv}
        return {name: torch.as_tensor(array) for name, array in arrays.items()}


def policy_loss(ac: MLPActorCritic, batch: Batch, clip_ratio: float) -> tuple[torch.Tensor, dict[str, float]]:
    """PPO's clipped surrogate, with figures to log: approximate KL, entropy, share of clipped steps."""
    pi = ac.distribution(batch["obs"])
    log_ratio = pi.log_prob(batch["act"]) - batch["logp"]
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
    loss = -torch.min(ratio * batch["adv"], clipped * batch["adv"]).mean()
    figures = {
        "KL": -log_ratio.mean().item(),
        "Entropy": pi.entropy().mean().item(),
        "ClipFrac": (ratio != clipped).float().mean().item(),
    }
    return loss, figures


def value_loss(ac: MLPActorCritic, batch: Batch) -> torch.Tensor:
    """Mean squared error of the value function against the discounted returns."""
    return ((ac.v(batch["obs"]) - batch["ret"]) ** 2).mean()


def descend(loss: torch.Tensor, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """One gradient step, with the gradient averaged over the ranks."""
    optimizer.zero_grad()
    loss.backward()
    mpi_avg_grads(network)
    optimizer.step()


def ppo(
    env_fn: Callable[[], gym.Env],
    ac_kwargs: dict[str, Any] | None = None,
    seed: int = 0,
    steps_per_epoch: int = 2000,
    epochs: int = 50,
    gamma: float = 0.99,
    lam: float = 0.97,
    clip_ratio: float = 0.2,
    pi_lr: float = 3e-3,
    vf_lr: float = 3e-3,
    train_pi_iters: int = 40,
    train_v_iters: int = 40,
    target_kl: float = 0.03,
    target_return: float = float("inf"),
    logger_kwargs: dict[str, Any] | None = None,
) -> MLPActorCritic:
    """Train, and return the actor-critic. Run by every rank alike.

    Args:
        env_fn: makes an environment with gymnasium's interface and discrete actions.
        ac_kwargs: passed on to MLPActorCritic.
        seed: of the environment and of torch; each rank derives its own.
        steps_per_epoch: interactions in an epoch, shared out over the ranks: at least one for each.
        epochs: the most epochs to train for.
        gamma, lam: discount, and lambda of the advantage estimate.
        clip_ratio: how far a ratio of new to old probability may move and still be rewarded.
        pi_lr, vf_lr: Adam's step sizes.
        train_pi_iters, train_v_iters: gradient steps in an epoch, on the whole batch.
        target_kl: the policy's steps end for the epoch when the approximate KL passes 1.5 times this.
        target_return: training ends after the epoch whose average return is above this.
        logger_kwargs: passed on to EpochLogger; with resume=True the run in the folder goes on.
    """
    logger = EpochLogger(**(logger_kwargs or {}))
    logger.save_config(locals())

    setup_pytorch_for_mpi()
    torch.manual_seed(seed + 10_000 * proc_id())
    env = env_fn()
    ac = MLPActorCritic(env.observation_space, env.action_space, **(ac_kwargs or {}))
    sync_params(ac)
    logger.setup_pytorch_saver(ac)
    pi_optimizer = torch.optim.Adam(ac.pi.parameters(), lr=pi_lr)
    vf_optimizer = torch.optim.Adam(ac.v.parameters(), lr=vf_lr)
    local_steps = steps_per_epoch // num_procs()
    if local_steps < 1:
        raise ValueError(f"steps_per_epoch={steps_per_epoch} is less than the number of ranks, {num_procs()}")
    buffer = PPOBuffer(gym.spaces.flatdim(env.observation_space), local_steps, gamma, lam)

    def measure(batch: Batch) -> dict[str, float]:
        """Both losses and the policy's figures, as the networks are now."""
        with torch.no_grad():
            loss_pi, figures = policy_loss(ac, batch, clip_ratio)
            return {"LossPi": loss_pi.item(), "LossV": value_loss(ac, batch).item(), **figures}

    def update(batch: Batch) -> None:
        """One epoch's gradient steps, the same number on every rank."""
        before = measure(batch)
        pi_steps = 0
        while pi_steps < train_pi_iters:
            loss_pi, figures = policy_loss(ac, batch, clip_ratio)
            if mpi_avg(figures["KL"]) > 1.5 * target_kl:
                break
            descend(loss_pi, ac.pi, pi_optimizer)
            pi_steps += 1
        for _ in range(train_v_iters):
            descend(value_loss(ac, batch), ac.v, vf_optimizer)
        after = measure(batch)
        logger.store(LossPi=before["LossPi"], DeltaLossPi=after["LossPi"] - before["LossPi"],
                     LossV=before["LossV"], DeltaLossV=after["LossV"] - before["LossV"],
                     Entropy=before["Entropy"], KL=after["KL"], ClipFrac=after["ClipFrac"], StopIter=pi_steps)

    start = time.time()
    first_epoch, (obs, _) = 0, env.reset(seed=seed + 10_000 * proc_id())
    ep_ret, ep_len = 0.0, 0
    state = logger.load_state()  # with the random generators as they were
    if state is not None:
        first_epoch, env, obs = state["epoch"] + 1, state["env"], state["obs"]
        ac.load_state_dict(state["ac"])
        pi_optimizer.load_state_dict(state["pi_optimizer"])
        vf_optimizer.load_state_dict(state["vf_optimizer"])

    for epoch in range(first_epoch, epochs):
        for t in range(local_steps):
            act, val, logp = ac.step(obs)
            next_obs, rew, terminated, truncated, _ = env.step(act)
            buffer.store(obs, act, float(rew), val, logp)
            logger.store(VVals=val)
            obs, ep_ret, ep_len = next_obs, ep_ret + float(rew), ep_len + 1
            if terminated or truncated or t == local_steps - 1:
                buffer.finish_path(0.0 if terminated else ac.step(obs)[1])
                if terminated or truncated:  # an episode that only the epoch cut short has no return yet
                    logger.store(EpRet=ep_ret, EpLen=ep_len)
                obs, _ = env.reset()
                ep_ret, ep_len = 0.0, 0
        update(buffer.get())

        logger.save_state({
            "env": env, "obs": obs, "epoch": epoch, "ac": ac.state_dict(),
            "pi_optimizer": pi_optimizer.state_dict(), "vf_optimizer": vf_optimizer.state_dict(),
        })
        with logger.batch():  # one reduction over the ranks for all keys of the epoch
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("EpRet", with_min_and_max=True)
            logger.log_tabular("EpLen", average_only=True)
            logger.log_tabular("VVals", with_min_and_max=True)
            logger.log_tabular("TotalEnvInteracts", (epoch + 1) * local_steps * num_procs())
            for key in ("LossPi", "DeltaLossPi", "LossV", "DeltaLossV", "Entropy", "KL", "ClipFrac"):
                logger.log_tabular(key, average_only=True)
            logger.log_tabular("StopIter", average_only=True)
            logger.log_tabular("Time", time.time() - start)
        solved = logger.log_current_row["AverageEpRet"] > target_return
        logger.dump_tabular()
        if solved:
            break
    env.close()
    logger.close()
    return ac


def save_learning_curve(run_dir: str) -> str:
    """Draw the average return, with a band of one standard deviation; returns the path of the PNG."""
    run = read_run(run_dir)
    x, mean, std = run["TotalEnvInteracts"], run["AverageEpRet"], run["StdEpRet"]
    figure = Figure(figsize=(6, 4), layout="constrained")  # without pyplot: needs no display
    axes = figure.add_subplot(xlabel="Environment interactions", ylabel="Average return of an episode")
    axes.fill_between(x, mean - std, mean + std, alpha=0.25, linewidth=0)
    axes.plot(x, mean, marker=".")
    axes.grid(alpha=0.3)
    path = os.path.join(run_dir, "learning_curve.png")
    figure.savefig(path, dpi=120)
    return path


def play(run_dir: str, episodes: int = 10, seed: int = 1000) -> None:
    """Reload the policy and the environment of a run, play with the likeliest actions and print a table.

    Saved models and environments are pickles, and loading one runs whatever code it holds: play only runs
    you trust.
    """
    env, get_action = load_policy_and_env(run_dir, deterministic=True)
    logger = EpochLogger()
    for episode in evaluate(env, get_action, num_episodes=episodes, seed=seed):
        logger.store(EpRet=episode.ret, EpLen=episode.length)
    with logger.batch():
        logger.log_tabular("Episodes", episodes)
        logger.log_tabular("EpRet", with_min_and_max=True)
        logger.log_tabular("EpLen", average_only=True)
    logger.dump_tabular()
    logger.close()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="CartPole-v1", help="a gymnasium id with discrete actions")
    parser.add_argument("--cpu", type=int, default=1, help="MPI ranks to train on")
    parser.add_argument("--seed", "-s", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=50, help="the most epochs to train for")
    parser.add_argument("--steps", type=int, default=2000, help="interactions an epoch, over all ranks")
    parser.add_argument("--hid", type=int, default=64, help="width of a hidden layer")
    parser.add_argument("--l", type=int, default=2, help="number of hidden layers")
    parser.add_argument("--target_return", type=float, default=150.0, help="stop above this average return")
    parser.add_argument("--exp_name", default="ppo")
    parser.add_argument("--output_dir", help="the run's folder (default: runs/EXP_NAME)")
    parser.add_argument("--console", default="plain", help="how rows are printed: plain, or rich")
    parser.add_argument("--sinks", nargs="*", metavar="NAME", help="more places for rows: tensorboard, ...")
    parser.add_argument("--resume", action="store_true", help="go on with the run that is in the folder")
    parser.add_argument("--evaluate", metavar="DIR", help="play the policy saved in DIR, train none")
    parser.add_argument("--episodes", type=int, default=10, help="episodes to play with --evaluate")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    torch.set_num_threads(1)  # networks of this size are quickest on one
    env_fn = functools.partial(gym.make, args.env)
    if args.evaluate:
        play(args.evaluate, args.episodes)
        return
    mpi_fork(args.cpu)  # from here on as many processes as asked for
    output_dir = args.output_dir or os.path.join("runs", args.exp_name)
    logger_kwargs = {
        "output_dir": output_dir,
        "exp_name": args.exp_name,
        "resume": args.resume,
        "console": args.console,
        "sinks": args.sinks,
    }
    ppo(
        env_fn,
        ac_kwargs={"hidden_sizes": (args.hid,) * args.l},
        seed=args.seed,
        steps_per_epoch=args.steps,
        epochs=args.epochs,
        target_return=args.target_return,
        logger_kwargs=logger_kwargs,
    )
    if proc_id() == 0:
        print(f"Learning curve: {save_learning_curve(output_dir)}")


if __name__ == "__main__":
    main()
