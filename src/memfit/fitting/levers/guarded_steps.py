"""Steps that are run again in smaller micro-batches, until one has memory enough or none can."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from memfit.backends import load
from memfit.backends.first_step import Which
from memfit.backends.micro_batches import MicroBatches
from memfit.backends.out_of_memory import is_out_of_memory
from memfit.backends.retry import WHOLE, RetriedStep
from memfit.errors import UsageError
from memfit.fitting.levers.first_batch_proof import FirstBatchProof
from memfit.heap.release import release
from memfit.messages import say

KINDS: tuple[Which, ...] = ("train", "test")
_INTACT = "The model is as it was before this batch."
_HALF_UPDATED = (
    "The update of the weights had begun, so the model is not as it was: load it from a file."
)
_UPDATE_FAILS = (
    "there is no memory to update the weights, and smaller micro-batches would not help. "
)
# An update needs the same whatever the micro-batches. It is tried once more, when memory was given
# back.
_MOST_FAILED_UPDATES = 2


class MicroBatchSize:
    """How large a micro-batch may be, as batches go well or not.

    Args:
        largest: The size to begin with.
        calm_batches: After how many good batches it grows; twice as many each time that growing
            was followed by a failure.

    Attributes:
        now: Samples in a micro-batch.
    """

    def __init__(self, largest: int, calm_batches: int) -> None:
        self._largest = largest
        self._calm_batches = calm_batches
        self._num_calm = 0
        self._has_grown = False
        self.now = largest

    def shrink(self, num_samples: int) -> None:
        """After a batch of so many samples has failed."""
        if self._has_grown:
            self._calm_batches *= 2
        self._has_grown = False
        self._num_calm = 0
        self.now = max(1, min(self.now, num_samples) // 2)

    def count(self, num_samples: int) -> bool:
        """Counts a batch that went well; returns whether micro-batches are larger from now on."""
        if self.now == self._largest:
            return False
        self._num_calm += 1
        if self._num_calm < self._calm_batches:
            return False
        self._num_calm = 0
        self._has_grown = True
        self.now = min(self._largest, 2 * self.now)
        if self.now >= num_samples:
            self.now = self._largest
        return True


@dataclass(frozen=True, slots=True)
class _Failure:
    """That memory ran out, and in which phase of the step."""

    error: Exception
    is_in_update: bool


class GuardedSteps:
    """Gets the steps of a training or an evaluation through, however often it takes.

    Args:
        size: How large a micro-batch may be.
        proof: Tells whether batches may be cut.
        which: Whether steps train or evaluate.

    Attributes:
        which: The same.
        proof: The same.
        micro_batches: How batches are cut.
    """

    def __init__(self, size: MicroBatchSize, proof: FirstBatchProof, which: Which) -> None:
        self._size = size
        self.which: Which = which
        self.proof = proof
        self.micro_batches = MicroBatches(WHOLE)

    def run(self, step: RetriedStep) -> None:
        """Runs the step until it succeeds.

        Raises:
            Exception: What the framework raised, with a note, if nothing more can be tried.
        """
        tried: list[int] = []
        num_failed_updates = 0
        while (failure := _try(step, self._size.now)) is not None:
            _clear_frames(failure.error)
            is_intact = step.undo()
            tried.append(min(self._size.now, step.num_samples))
            num_failed_updates += failure.is_in_update
            load("retry").release()
            release()
            if failure.is_in_update:
                end = _UPDATE_FAILS if num_failed_updates == _MOST_FAILED_UPDATES else None
            else:
                end = self._find_end(step, tried)
            note = end if is_intact else ""
            if note is not None:
                failure.error.add_note(f"memfit: {note}{_INTACT if is_intact else _HALF_UPDATED}")
                raise failure.error
            if not failure.is_in_update:
                self._size.shrink(step.num_samples)
            del failure
            say(
                f"out of memory in a batch of {step.num_samples} samples; "
                f"it is run again{self._describe_size(step.num_samples)}"
            )
        if self._size.count(step.num_samples):
            how = self._describe_size(step.num_samples) or " whole"
            say(f"enough memory for a while; batches are run{how}")

    def _find_end(self, step: RetriedStep, tried: Sequence[int]) -> str | None:
        """Returns why nothing smaller can be tried, or `None`."""
        if tried[-1] == 1:
            sizes = ", ".join(str(size) for size in tried)
            return f"the batch was run in micro-batches of {sizes}; not even one sample fits. "
        try:
            step.check_cuttable()
            if not self.proof.holds(self.which):
                step.pause(lambda batch: self.proof.check(batch, self.which))
        except UsageError as error:
            return f"the batch could not be run in micro-batches. {error} "
        except Exception as error:  # noqa: BLE001  # what ran out of memory is the error to raise
            raised = f"{type(error).__name__}: {error}".partition("\n")[0]
            return f"the batch could not be run in micro-batches: some rows of it raise {raised}. "
        self.micro_batches.collects = self.proof.collects
        return None

    def _describe_size(self, num_samples: int) -> str:
        return f" in micro-batches of {self._size.now}" if self._size.now < num_samples else ""


def _try(step: RetriedStep, size: int) -> _Failure | None:
    """Runs the step once; returns how memory ran out, if it did."""
    is_in_update = False
    try:
        step.learn(size)
        is_in_update = True
        if not step.has_room():
            step.keep()
        step.update()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return _Failure(error, is_in_update)
    return None


def _clear_frames(error: BaseException) -> None:
    """Lets go of the tensors that the traceback holds; it can still be printed."""
    current: BaseException | None = error
    while current is not None:
        traceback.clear_frames(current.__traceback__)
        current = current.__cause__ or current.__context__
