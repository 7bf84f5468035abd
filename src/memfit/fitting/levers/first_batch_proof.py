"""A lever that changes nothing before it is proved, on the first batch of the user's own data."""

import contextlib
import functools
import random
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memfit.backends import load
from memfit.backends.first_step import Which
from memfit.errors import UsageError
from memfit.fitting.levers.change import Change, forget_functions
from memfit.fitting.proof.gate import check_same
from memfit.fitting.proof.proof import Lever
from memfit.fitting.proof.rows import FEW_ROWS, MOST_ROWS
from memfit.fitting.proof.verdict import Verdict
from memfit.fitting.state.saved_state import wait_until_quiet
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import loss_tracker
from memfit.keras_private.trainer import build_with, is_built


class FirstBatchProof:
    """The proof of a lever for a model as it is compiled, and for what is trainable of it.

    Args:
        model: A compiled model.
        describe: Returns the lever as a proof sees it; raises if the model has become one that the
            lever is not for.
        allow: What may go on without a proof.
        fitting_rows: How many rows are known to fit into a step.
    """

    def __init__(
        self,
        model: Any,
        describe: Callable[[], Lever],
        allow: Sequence[str] = (),
        fitting_rows: int = MOST_ROWS,
    ) -> None:
        self._model = model
        self._describe = describe
        self._allow = allow
        self._most_rows = max(FEW_ROWS, min(fitting_rows, MOST_ROWS))
        self._verdicts: dict[str, tuple[Any, Verdict]] = {}

    @property
    def collects(self) -> bool:
        """Whether metrics were found to need the predictions of the whole batch."""
        return any(verdict.collects for _, verdict in self._verdicts.values())

    def holds(self, which: Which) -> bool:
        """Returns whether it was proved; what holds for training holds for an evaluation."""
        kinds = ("train",) if which == "train" else ("train", "test")
        current = _describe_compiled(self._model)
        found = [self._verdicts[kind] for kind in kinds if kind in self._verdicts]
        return any(compiled == current and verdict.num_rows != 1 for compiled, verdict in found)

    def check(self, batch: Any, which: Which) -> Verdict:
        """Proves the lever on a batch, as the step gets it.

        Raises:
            UsageError: The lever would train something else, or nobody can tell.
        """
        import keras

        self._verdicts.pop(which, None)
        wait_until_quiet()
        _build(self._model, batch)
        lever = self._describe()
        rows = keras.utils.unpack_x_y_sample_weight(batch)
        try:
            verdict = check_same(
                self._model, rows, lever, allow=self._allow, most_rows=self._most_rows
            )
        except UsageError:
            raise
        except Exception as error:
            if which == "train":
                raise  # as the training itself would
            raise UsageError(
                "An evaluation in micro-batches is proved by a training step, and one of this "
                f"model raises {type(error).__name__}: {error}. Evaluate it in whole batches."
            ) from error
        self._verdicts[which] = _describe_compiled(self._model), verdict
        return verdict


class HeldLever:
    """Installs a lever when it was proved, at the first batch of a training or an evaluation.

    A refusal undoes it, and reaches the caller of `fit` before the first update.

    Args:
        model: A Keras model.
        proof: Proves the lever.
        install: Installs it.
        end: Called when it is undone.
    """

    def __init__(
        self,
        model: Any,
        proof: FirstBatchProof,
        install: Callable[[], Change],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._model = model
        self._proof = proof
        self._install = install
        self._end = end
        self._installed: Change | None = None
        self._undo_holds: list[Callable[[], None]] = []
        self._drawn: _RandomNumbers | None = None
        self._is_over = False

    def hold(self, *kinds: Which) -> None:
        """Waits for the first batch of a training, an evaluation, or both."""
        for which in kinds:
            on_first = functools.partial(self._on_first, which)
            on_begin = functools.partial(self._on_begin, which)
            hold = load("first_step").hold
            self._undo_holds.append(hold(self._model, on_first, which=which, on_begin=on_begin))

    def install(self) -> None:
        """Installs the lever at once, for those who train without `fit`."""
        self._installed = self._install()

    def undo(self) -> None:
        """Puts everything back; once."""
        if self._is_over:
            return
        self._is_over = True
        for undo in self._undo_holds:
            undo()
        self._uninstall()
        forget_functions(self._model)
        self._end()

    def _on_begin(self, which: Which) -> None:
        self._drawn = None
        if not self._proof.holds(which):
            with self._training_kept(which):
                self._uninstall()  # Keras traces its own step
            # What shuffles the first epoch is drawn again by the next `fit`, if this is refused.
            self._drawn = _RandomNumbers()

    def _on_first(self, which: Which, batch: Any) -> bool | None:
        if self._proof.holds(which):
            return None
        with self._training_kept(which):
            self._uninstall()
            try:
                verdict = self._proof.check(batch, which)
            except UsageError:
                self.undo()
                if self._drawn is not None:
                    self._drawn.restore()
                raise
            self._installed = self._install()
        # One row is no micro-batches; the next batch may have more.
        return verdict.num_rows != 1

    @contextlib.contextmanager
    def _training_kept(self, which: Which) -> Iterator[None]:
        """Leaves the function of a training alone, which may be running around an evaluation."""
        before = self._model.train_function if which == "test" else None
        try:
            yield
        finally:
            if before is not None:
                self._model.train_function = before

    def _uninstall(self) -> None:
        installed, self._installed = self._installed, None
        if installed is not None:
            installed.undo()


class _RandomNumbers:
    """Where Python, NumPy and the framework are in their random numbers."""

    def __init__(self) -> None:
        import numpy as np

        self._places = random.getstate(), np.random.get_state(), load("state").get_random_state()

    def restore(self) -> None:
        import numpy as np

        of_python, of_numpy, of_framework = self._places
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        load("state").set_random_state(of_framework)


def _build(model: Any, batch: Any) -> None:
    """Builds what Keras would build inside of its first step."""
    if not is_built(model):
        with contextlib.suppress(Exception):  # a `call` that only runs on real values
            build_with(model, batch)


def _describe_compiled(model: Any) -> tuple[Any, ...]:
    return weakref.ref(loss_tracker(model)), tuple(one.trainable for one in all_layers(model))
