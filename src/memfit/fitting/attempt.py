"""What a search asks to be tried and what it is told of it: values, and nothing that runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recomputation:
    """Blocks whose activations the backward pass computes again.

    Attributes:
        bytes_to_save: How much lower the peak shall be; `None` for all that can be saved.
        batch_size: The samples of which this is saved.
    """

    bytes_to_save: int | None
    batch_size: int


@dataclass(frozen=True, slots=True)
class Levers:
    """What is changed in a model.

    Attributes:
        micro_batch_size: Samples in a micro-batch; `None` if batches stay whole.
        recompute: What is recomputed; `None` for nothing.
        lowers_precision: Whether the model computes in lower precision.
    """

    micro_batch_size: int | None = None
    recompute: Recomputation | None = None
    lowers_precision: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """A step to be measured.

    Attributes:
        levers: What is to be installed for it; what else is installed is undone.
        num_samples: Samples in the batch that the step trains on. 0: no step runs, and what is
            taken before any is measured.
        is_proof: Whether it is to be proved, on so many samples, that the levers leave the
            training the same.
    """

    levers: Levers
    num_samples: int
    is_proof: bool = False

    @property
    def size(self) -> int:
        """Samples that run at once."""
        return min(self.num_samples, self.levers.micro_batch_size or self.num_samples)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an attempt was measured to need.

    Attributes:
        size: Samples that ran at once.
        peak_bytes: The most memory while it ran.
        failed: Whether the step ran out of memory.
        num_samples: Samples in its batch.
        step_s: How long a step took, once compiled.
        kept_bytes: What the process takes afterwards, with all given back that nothing holds.
        inspection: What is known of the model, where no step was to run.
    """

    size: int
    peak_bytes: int
    failed: bool = False
    num_samples: int = 0
    step_s: float = 0.0
    kept_bytes: int = 0
    inspection: "Inspection | None" = None

    @property
    def sample_s(self) -> float | None:
        """How long it took for each of its samples, where known."""
        return self.step_s / self.num_samples if self.num_samples else None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is known of a model before any step, once levers are installed.

    Attributes:
        is_possible: Whether the levers can be installed, or are proved to leave the training the
            same. Otherwise nothing was changed.
        why: What stands in the way of that, in words.
        changes: What was changed beside the size of micro-batches, in words; of a proof, what it
            found.
        counted_bytes: What the layers keep of a sample, and the sample itself, if it can be
            counted.
        counted_s: How long a sample takes at most, if it can be counted.
    """

    is_possible: bool = True
    why: str = ""
    changes: tuple[str, ...] = ()
    counted_bytes: float | None = None
    counted_s: float | None = None
