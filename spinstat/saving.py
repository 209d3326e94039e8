"""The part of a logger that saves the state of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .files import WORK_FOLDER
from .terminal import warn

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Point, Savers
    from .comm import Comm
    from .recipe import Recipe


class SavedState:
    """What a logger knows of its checkpoints.

    Attributes:
        rules: keep_last, keep_every and keep_best, as given.
        savers: takes the checkpoints; made when the first is taken.
        point: the checkpoint that this run has gone on from.
        opening: lines and columns of the file of rows when it was opened.
        last: the last checkpoint taken.
        recorded_env: the environment that env.json describes; another one like it does as well.
        description: what env.json says of it.
        rating: the last row's value of the column that keep_best names.
        recipe: what makes the module of setup_pytorch_saver, with safe=True.
        dumped: rows since the run began, resumed runs included.
    """

    __slots__ = (
        "description", "dumped", "last", "opening", "point", "rating", "recipe", "recorded_env", "rules",
        "savers",
    )  # fmt: skip

    def __init__(self, rules: tuple[int | None, int | None, str | None]) -> None:
        self.rules: tuple[int | None, int | None, str | None] = rules
        self.savers: Savers | None = None
        self.point: Point | None = None
        self.opening: tuple[int, Sequence[str]] = (0, ())
        self.last: Checkpoint | None = None
        self.recorded_env: object = None
        self.description: dict[str, Any] | None = None
        self.rating: object = None
        self.recipe: Recipe | None = None
        self.dumped: int = 0


class StateSaver:
    """What Logger has for checkpoints; `spinstat.checkpoint` is loaded when one is taken."""

    pytorch_saver_elements: Any  # what the setup_... methods were given; not there before
    tf_saver_elements: dict[str, Any]
    tf_saver_info: dict[str, dict[str, str]]

    _comm: Comm
    _is_root: bool
    _folder: str | None
    _saved: SavedState

    if TYPE_CHECKING:  # Logger has them

        def _alert(self, message: str) -> None: ...

        def _is_between_rows(self) -> bool: ...

        def _position(self) -> tuple[int | None, Sequence[str]] | None: ...

    def save_state(self, state_dict: Mapping[str, object], itr: int | None = None) -> None:
        """Save the state of the run, and the models that the setup_... methods named.

        Rank 0 writes Spinning Up's files: vars.pkl, pyt_save/model.pt and tf1_save/. They are written whole
        before they replace those of the call before. What cannot be saved is told through `log`, and the rest
        is saved; `last_checkpoint` has the paths. The states of the global random generators are saved too.

        Other ranks that call this save their own state_dict and generators, for `load_state`. Nothing is
        communicated: rank 0 may call it alone.

        A run can go on from a checkpoint that is taken when no values are stored or logged that wait for
        dump_tabular, or else once that has been called. A script that stores nothing, and only logs explicit
        values, should therefore save after dump_tabular.

        Args:
            state_dict: what to keep besides the models, mostly the environment; goes to vars.pkl, as a pickle
                (joblib.load and pickle.load read it). With cloudpickle installed, lambdas and the classes of
                the script itself are saved too. An entry that cannot be pickled is left out. For the
                environment in "env", with what makes it in "env_fn" if you like, env.json tells how to make
                it again; a warning tells when neither that nor the pickle will do.
            itr: number in the names of the files (vars10.pkl). None: none, each call replaces the last one.

        Raises:
            TypeError: itr is no number.
        """
        if self._folder is not None:
            before = self._saved.last
            self._get_savers().save(state_dict, itr)
            if self._is_root and isinstance(state_dict, Mapping):
                last = self._saved.last
                saved = None if last is None or last is before else last.vars
                self._record_env(state_dict, saved)

    def _record_env(self, state: Mapping[str, Any], vars_path: str | None) -> None:
        """Write env.json for an environment that is saved for the first time, and try what was saved."""
        env = state.get("env")
        if env is None or env is self._saved.recorded_env:
            return
        from .envs import describe, record

        description = describe(env, state.get("env_fn"))
        if description == self._saved.description:  # made anew, as for each evaluation
            self._saved.recorded_env = env
            return
        try:
            reasons = record(self._folder or "", description, vars_path)
        except OSError as error:  # the next save_state tries again
            warn(str(error))
            return
        self._saved.recorded_env, self._saved.description = env, description
        if reasons:
            warn(
                "nothing that was saved will give the environment of this run back, to play its policy in: "
                f"{'; '.join(reasons)}. Give save_state what makes it, as 'env_fn'"
            )

    def load_state(self) -> Any:
        """The state that a resumed run goes on from, with the random generators set to what they were then.

            logger = EpochLogger(output_dir, resume=True)
            state = logger.load_state()
            first_epoch = 0 if state is None else state["epoch"] + 1

        Nothing is communicated. Each rank gets what it has saved itself; where not all ranks have saved, or
        their number is another one, all get what rank 0 has, with a warning. `last_checkpoint` tells where
        the models are. A pickle is read, which runs whatever code it holds.

        Returns:
            What save_state was given. Where no checkpoint has all of it, what could be saved, with a warning
            that names what is missing; one that has all of it comes first, even where it is older. None where
            there is nothing to go on from, and without resume=True: the run begins.

        Raises:
            ImportError: the state needs a class that is not there; says which, and the ways out.
            Exception: it cannot be read for another reason; names the file.

        Examples:
            >>> from spinstat import EpochLogger
            >>> with EpochLogger("run", quiet=True) as logger:
            ...     logger.log_tabular("Epoch", 0)
            ...     logger.dump_tabular()
            ...     logger.save_state({"epoch": 0})
            >>> with EpochLogger("run", resume=True, quiet=True) as logger:
            ...     logger.load_state()
            {'epoch': 0}
        """
        from .checkpoint import load_point

        if self._saved.point is None:
            if self._is_root:
                self._get_savers().note_start()
            return None
        if not self._saved.point.complete and self._comm.size * self._saved.point.resume.size > 1:
            warn(
                f"the checkpoint in {self._folder} has no state of each of the {self._comm.size} ranks; all "
                "go on with that of rank 0, the others with their random generators as they are"
            )
        return load_point(self._folder or "", self._comm.rank, self._saved.point)

    @property
    def last_checkpoint(self) -> Checkpoint | None:
        """The paths of the files that this logger has saved last, or has gone on from; None for none."""
        if self._saved.last is None and self._saved.point is not None:
            from .checkpoint import point_files

            self._saved.last = point_files(self._folder or "", self._saved.point)
        return self._saved.last

    def setup_tf_saver(
        self, sess: Any, inputs: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None
    ) -> None:
        """Have save_state save a TensorFlow graph, or a model of TensorFlow 2, in tf1_save/.

        Args:
            sess: the session that trains the graph (tf.compat.v1.Session), or a Keras model or tf.Module,
                which is saved with its signatures.
            inputs: the graph's placeholders by names of your choice, all that the outputs need. None for a
                model.
            outputs: its results by names of your choice. None for a model.

        Raises:
            TypeError: sess is something else, or inputs and outputs do not fit it.

        Examples:
            >>> import tensorflow as tf
            >>> from spinstat import EpochLogger
            >>> logger = EpochLogger("run", quiet=True)
            >>> with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as sess:
            ...     x = tf.compat.v1.placeholder(tf.float32, (None, 2))
            ...     logger.setup_tf_saver(sess, inputs={"x": x}, outputs={"pi": 2 * x})
            ...     logger.save_state({})
        """
        from .checkpoint import check_elements

        self.tf_saver_info = check_elements(sess, inputs, outputs)
        self.tf_saver_elements = {"session": sess, "inputs": inputs, "outputs": outputs}

    def _tf_simple_save(self, itr: int | None = None) -> None:
        """Save the graph alone; save_state calls this for its part of a checkpoint."""
        if not hasattr(self, "tf_saver_elements"):
            raise AssertionError("no graph to save: call setup_tf_saver() first")
        if self._is_root:
            self._get_savers().save_tf(itr)

    def setup_pytorch_saver(
        self,
        what_to_save: Any,
        *,
        safe: bool = False,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Have save_state save a PyTorch module, or anything else that torch.save takes, in pyt_save/.

        It is saved as it is at the time of save_state, whole: a module, a dict of modules and optimizers.

        A model.pt is a pickle, which only those can load who trust the run. With safe=True, what_to_save is
        one module, and each checkpoint also has pyt_save/weights.safetensors: its state_dict, and as JSON the
        import path of its class with args and kwargs. `load_policy_and_env(..., trust=False)` makes the
        module anew from that, and nothing else of the module is in there. Another module is made here and
        now, to see whether it will work.

            ac = MLPActorCritic(env.observation_space, env.action_space, hidden_sizes=(64, 64))
            logger.setup_pytorch_saver(
                ac, safe=True, args=(env.observation_space, env.action_space),
                kwargs={"hidden_sizes": (64, 64)},
            )

        Args:
            what_to_save: the module, or other object.
            safe: save bare weights as well.
            args, kwargs: with safe=True, the arguments that the module's class was called with: None,
                numbers (NumPy's come back as Python's), text, lists, tuples, dicts, classes and functions of
                modules, and spaces of gymnasium or gym.

        Raises:
            TypeError: with safe=True, what_to_save is no module; its class is of the script itself or of a
                function; or an argument is something else. Without safe=True, there are arguments.
            ValueError: the class makes something else of the arguments, or nothing.
            ImportError: with safe=True, safetensors is not installed.

        Examples:
            >>> import torch
            >>> from spinstat import EpochLogger
            >>> logger = EpochLogger("run", quiet=True)
            >>> logger.setup_pytorch_saver(torch.nn.Linear(2, 1))
            >>> logger.save_state({"epoch": 0}, itr=10)
            >>> logger.last_checkpoint.pytorch.endswith("model10.pt")
            True
        """
        recipe = None
        if safe:
            from .checkpoint import make_recipe

            recipe = make_recipe(what_to_save, args, kwargs or {})
        elif args or kwargs:
            raise TypeError("setup_pytorch_saver uses args and kwargs with safe=True only")
        self.pytorch_saver_elements = what_to_save
        self._saved.recipe = recipe

    def _pytorch_simple_save(self, itr: int | None = None) -> None:
        """Save what setup_pytorch_saver named alone; save_state calls this for its part of a checkpoint."""
        if not hasattr(self, "pytorch_saver_elements"):
            raise AssertionError("nothing to save: call setup_pytorch_saver() first")
        if self._is_root:
            self._get_savers().save_pytorch(itr)

    def _set_retention(self, keep_last: int | None, keep_every: int | None, keep_best: str | None) -> None:
        self._saved = SavedState((keep_last, keep_every, keep_best))
        if any(rule is not None for rule in self._saved.rules):
            from .checkpoint import Retention

            Retention(*self._saved.rules)  # raises for what is no rule

    def _open_run(self, file: str, resume: bool) -> Sequence[str] | None:
        """Go back to where a resumed run goes on from; returns the columns there, None for unknown."""
        folder = self._folder
        if folder is None or not os.path.isdir(os.path.join(folder, WORK_FOLDER)):
            return None
        from .checkpoint import open_run

        self._saved.point, start = open_run(folder, self._comm.rank, self._comm.size, file, resume)
        if self._saved.point is not None:
            self._saved.dumped = self._saved.point.resume.rows
        return None if start is None else start.columns

    def _after_row(self, row: Mapping[str, object]) -> None:
        """Complete the checkpoints that belong to a row that has just been dumped."""
        self._saved.dumped += 1
        self._saved.rating = row.get(self._saved.rules[2] or "")
        if self._saved.savers is not None:
            self._saved.savers.after_row()

    def _get_savers(self) -> Savers:
        saved = self._saved
        if saved.savers is None:
            from .checkpoint import Savers

            comm = self._comm
            saved.savers = Savers(
                self, self._folder or "", comm.rank, comm.size, saved.rules, saved.point, saved.opening
            )
        return saved.savers
