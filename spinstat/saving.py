"""The part of a logger that saves the state of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Savers


class StateSaver:
    """What Logger has for checkpoints; `spinstat.checkpoint` is loaded when one is taken."""

    pytorch_saver_elements: Any  # what the setup_... methods were given; not there before
    tf_saver_elements: dict[str, Any]
    tf_saver_info: dict[str, dict[str, str]]

    _is_root: bool
    _folder: str | None
    _savers: Savers | None = None
    _rating: object = None  # the last row's value of the column that keep_best names

    if TYPE_CHECKING:  # Logger has them

        def _alert(self, message: str) -> None: ...

        def _is_between_rows(self) -> bool: ...

    def save_state(self, state_dict: Mapping[str, object], itr: int | None = None) -> None:
        """Save the state of the run, and the models that the setup_... methods named, on rank 0.

        The files are those of Spinning Up: vars.pkl, pyt_save/model.pt and tf1_save/. They are written whole
        before they replace those of the call before. What cannot be saved is told through `log`, and the rest
        is saved; `last_checkpoint` has the paths.

        Args:
            state_dict: what to keep besides the models, mostly the environment; goes to vars.pkl, as a pickle
                (joblib.load and pickle.load read it). With cloudpickle installed, lambdas and the classes of
                the script itself are saved too. An entry that cannot be pickled is left out.
            itr: number in the names of the files (vars10.pkl). None: none, each call replaces the last one.

        Raises:
            TypeError: itr is no number.
        """
        if self._is_root:
            self._get_savers().save(state_dict, itr)

    @property
    def last_checkpoint(self) -> Checkpoint | None:
        """The paths of the files that this logger has saved last; None before, and off rank 0."""
        return None if self._savers is None else self._savers.last

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

    def setup_pytorch_saver(self, what_to_save: Any) -> None:
        """Have save_state save a PyTorch module, or anything else that torch.save takes, in pyt_save/.

        It is saved as it is at the time of save_state, whole: a module, a dict of modules and optimizers.
        """
        self.pytorch_saver_elements = what_to_save

    def _pytorch_simple_save(self, itr: int | None = None) -> None:
        """Save what setup_pytorch_saver named alone; save_state calls this for its part of a checkpoint."""
        if not hasattr(self, "pytorch_saver_elements"):
            raise AssertionError("nothing to save: call setup_pytorch_saver() first")
        if self._is_root:
            self._get_savers().save_pytorch(itr)

    def _set_retention(self, keep_last: int | None, keep_every: int | None, keep_best: str | None) -> None:
        self._rules = (keep_last, keep_every, keep_best)
        if any(rule is not None for rule in self._rules):
            from .checkpoint import Retention

            Retention(*self._rules)  # raises for what is no rule

    def _after_row(self, row: Mapping[str, object]) -> None:
        """Complete the checkpoints that belong to a row that has just been dumped."""
        self._rating = row.get(self._rules[2] or "")
        if self._savers is not None:
            self._savers.after_row()

    def _get_savers(self) -> Savers:
        if self._savers is None:
            from .checkpoint import Savers

            self._savers = Savers(self, self._folder or "", self._rules)
        return self._savers
