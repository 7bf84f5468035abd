"""Whose memory a budget is about: that of this process and those it starts, or of accelerators."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Protocol

from memfit.backends import load
from memfit.backends.devices import DeviceMemory, Devices
from memfit.budget import Budget
from memfit.errors import BudgetError
from memfit.measure.limits import Limit, find_limit
from memfit.measure.malloc import trim
from memfit.measure.peak import Peak, read_tree_bytes
from memfit.messages import say
from memfit.units import format_size


class Gauge(Protocol):
    """One kind of memory: what is taken of it, and what there is.

    Attributes:
        place: Where it is, such as `"GPU:0"`; nothing for the memory of processes.
        can_reset: Whether a peak can be read after a higher one.
        fit_copies: How many copies of whole arrays `fit` has there at once.
        bend: How many times steeper than before it may rise with the size of micro-batches.
    """

    place: str
    can_reset: bool
    fit_copies: int
    bend: float

    def read(self) -> int:
        """Returns what is taken now."""

    def watch(self) -> contextlib.AbstractContextManager[Callable[[], int]]:
        """Returns a `with` block; what it gives returns the most that was taken inside it."""

    def find_limit(self) -> Limit | None:
        """Returns the most that can be taken, where known."""

    def check(self, budget_bytes: int) -> None:
        """Raises `BudgetError` if more is taken before training, or nothing can be measured."""

    def trim_above(self, most_bytes: int) -> None:
        """Gives back what lies free, if more than this is taken."""

    def trim_compiled(self) -> Callable[[], None]:
        """Gives back what compilations leave, from now on until the result is called."""


class HostGauge:
    """The resident memory of this process and those it starts."""

    place = ""
    can_reset = True

    def __init__(self, devices: Devices) -> None:
        self.fit_copies = devices.FIT_COPIES
        self.bend = devices.BEND

    def read(self) -> int:
        """Returns what is resident now."""
        return read_tree_bytes()

    @contextlib.contextmanager
    def watch(self) -> Iterator[Callable[[], int]]:
        """Gives what reads the peak since the block began."""
        with Peak() as peak:
            yield peak.read

    def find_limit(self) -> Limit:
        """Returns the limit that would be met first."""
        return find_limit(os.getpid())

    def check(self, budget_bytes: int) -> None:
        """Raises if the budget is taken before training."""
        idle_bytes = self.read()
        if budget_bytes <= idle_bytes:
            raise BudgetError(
                f"The budget is {format_size(budget_bytes)}, and this process takes "
                f"{format_size(idle_bytes)} before training, for the frameworks, the model and "
                "the data that the script has loaded. Give a larger budget."
            )

    def trim_above(self, most_bytes: int) -> None:
        """Has malloc give back what lies free."""
        if self.read() > most_bytes:
            trim()

    def trim_compiled(self) -> Callable[[], None]:
        """Has malloc give back what the compiler has freed, before the step takes as much."""
        return load("events").after_compiling(trim)


class DeviceGauge:
    """What tensors take of an accelerator; of several, of the one where they take the most.

    Written against what the frameworks document; not yet run on hardware.
    """

    bend = 1.0

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        # Where `fit` copies whole arrays, it begins with one on the device.
        self.fit_copies = min(devices.FIT_COPIES, 1)
        self.can_reset = devices.reset_peaks()
        self.place = ", ".join(one.device for one in self._find_counted())

    def read(self) -> int:
        """Returns what tensors take now."""
        return max((one.in_use_bytes for one in self._find_counted()), default=0)

    @contextlib.contextmanager
    def watch(self) -> Iterator[Callable[[], int]]:
        """Gives what reads the peak; where it cannot be set back, that is the most it can be."""
        self._devices.reset_peaks()
        yield self._read_peak

    def find_limit(self) -> Limit | None:
        """Returns what the framework may take of the smallest device."""
        limits = [
            Limit(one.limit_bytes, one.device) for one in self._find_counted() if one.limit_bytes
        ]
        return min(limits, key=lambda one: one.limit_bytes, default=None)

    def check(self, budget_bytes: int) -> None:
        """Raises if there is no device, or more was taken of it than could be measured."""
        budget = f"The device budget is {format_size(budget_bytes)}, and"
        idle_bytes, peak_bytes = self.read(), self._read_peak()
        if not self.place:
            raise BudgetError(
                f"{budget} this training uses no accelerator whose memory its backend reports. "
                "Give budget instead of device_budget: it limits the memory of this process."
            )
        if budget_bytes <= idle_bytes:
            raise BudgetError(
                f"{budget} {format_size(idle_bytes)} of {self.place} are taken before training. "
                "Give more than that: the model and other data of the script take it."
            )
        if budget_bytes <= peak_bytes:
            raise BudgetError(
                f"{budget} {format_size(peak_bytes)} of {self.place} were in use before. This "
                "backend reports only the highest peak so far, so no lower one can be measured. "
                "Train in a process that has not yet used the device: see memfit.isolated."
            )

    def trim_above(self, most_bytes: int) -> None:
        """Does nothing: only what tensors take is counted."""

    def trim_compiled(self) -> Callable[[], None]:
        """Does nothing, for the same reason."""
        return lambda: None

    def _read_peak(self) -> int:
        """Returns the highest peak since it was set back; where it cannot be, of all time."""
        return max((one.peak_bytes or 0 for one in self._find_counted()), default=0)

    def _find_counted(self) -> list[DeviceMemory]:
        devices = self._devices.read_devices()
        return [one for one in devices if not one.on_host and one.peak_bytes is not None]


def find_gauge(budget: Budget) -> Gauge:
    """Returns the gauge of the memory that `budget` is about."""
    devices = load("devices")
    return DeviceGauge(devices) if budget.place == "device" else HostGauge(devices)


def check_first_peak(peak_bytes: int, budget: Budget) -> None:
    """Raises if what comes before the first step was too much already."""
    if peak_bytes > budget.size_bytes:
        raise BudgetError(
            f"The budget of {budget} cannot be kept, and nothing was trained: up to "
            f"{format_size(peak_bytes)} were in use while fit() made its copies of the data, "
            "its first batch and what it builds before the first step. Give clearly more than "
            "that, or make the data or batch_size smaller: memfit.stream reads from disk."
        )


def check_budget(gauge: Gauge, budget: Budget) -> None:
    """Raises if the budget cannot be kept; says so if it is more than there is.

    Raises:
        BudgetError: More is taken before training, or nothing can be measured.
    """
    gauge.check(budget.size_bytes)
    limit = gauge.find_limit()
    if limit is not None and budget.size_bytes > limit.limit_bytes:
        say(
            f"the budget of {budget} is more than is available: "
            f"{format_size(limit.limit_bytes)} ({limit.source})",
            wraps=True,
        )
