"""`MemoryMonitor`: the Keras callback that records memory."""

import sys
from pathlib import Path
from typing import Any

import keras

from memfit.agent import process_recorder
from memfit.agent.recorder import Recorder
from memfit.agent.sampler import Counters
from memfit.failsafe import harmless
from memfit.measure.process import ProcessMemory
from memfit.messages import say
from memfit.record.run_folder import create_run
from memfit.record.samples import Sample


class MemoryMonitor(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
    """Records memory while `fit()`, `evaluate()` or `predict()` runs.

    The recording is written as training goes, so it outlives a killed process. Read it with
    `memfit diagnose` or `memfit report`. Each epoch's logs gain `memory_mb` (now) and
    `memory_peak_mb` (the most so far), and with an accelerator `device_memory_mb` and
    `device_memory_peak_mb`, so that `History`, `CSVLogger`, TensorBoard and MLflow show them.
    Put it first in the list: callbacks before it do not see the figures.

    Nothing it does touches the model, and it has no hook at the end of a batch, so Keras
    dispatches other callbacks as it would without it.

    Args:
        out: Folder for the recording. Defaults to a new one in `memfit-runs/`. Under
            `memfit run` the recording of that run is used.
        logs: Whether the figures go into Keras's logs. Defaults to `True`.

    Example:
    ```python
    model.fit(x, y, epochs=20, callbacks=[memfit.MemoryMonitor()])
    ```
    """

    def __init__(self, out: str | Path | None = None, *, logs: bool = True) -> None:
        super().__init__()
        self._out = Path(out) if out is not None else None
        self._run: Path | None = None
        self._adds_logs = logs
        self._recorder: Recorder | None = None
        self._counters = Counters()
        self._has_notified = False

    @property
    def run(self) -> Path | None:
        """Folder of the recording; `None` before training and where it cannot be written."""
        return self._recorder.run if self._recorder is not None else self._run

    def set_model(self, model: Any) -> None:
        """Keeps no reference: a monitor must not keep a model alive."""

    @harmless
    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the beginning of `fit`."""
        recorder = self._start()
        if recorder is None:
            return
        self._counters.fit = recorder.begin("fit")
        params = self.params or {}
        self._counters.epochs, self._counters.steps = params.get("epochs"), params.get("steps")

    @harmless
    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Marks the beginning of an epoch."""
        self._counters.epoch = epoch + 1
        self._counters.step = 0
        if self._recorder is not None:
            self._recorder.begin("epoch", epoch + 1)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Notes the step, and nothing more: this runs at every one."""
        self._counters.step = batch + 1

    @harmless
    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Takes a sample and puts its figures into the logs."""
        recorder = self._recorder
        if recorder is None:
            return
        self._counters.end_epoch()
        sample = recorder.sample_if_due()
        recorder.end("epoch")
        recorder.examine()
        if sample is not None and logs is not None and self._adds_logs:
            logs.update(_figures(sample))

    @harmless
    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the end of `fit`."""
        if self._recorder is not None:
            self._recorder.examine(is_end=True)
            self._recorder.end("fit")
            self._counters.epoch = None
            self._stop()

    @harmless
    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the beginning of `evaluate`, or of the validation inside `fit`."""
        recorder = self._start()
        if recorder is not None:
            recorder.begin("validation" if recorder.is_open("fit") else "evaluate")

    @harmless
    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the end of `evaluate` or validation. Its logs are results: left alone."""
        recorder = self._recorder
        if recorder is None:
            return
        if recorder.is_open("validation"):
            recorder.end("validation")
        else:
            recorder.end("evaluate")
            self._stop()

    @harmless
    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the beginning of `predict`."""
        recorder = self._start()
        if recorder is not None:
            recorder.begin("predict")

    @harmless
    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the end of `predict`."""
        if self._recorder is not None:
            self._recorder.end("predict")
            self._stop()

    def _start(self) -> Recorder | None:
        shared = process_recorder.get_recorder()
        if shared is not None:
            self._recorder, self._counters = shared, process_recorder.counters
        elif self._recorder is None or self._recorder.is_closed:
            self._recorder = self._open_alone()
        return self._recorder

    def _open_alone(self) -> Recorder | None:
        try:
            if self._run is None:  # one monitor may serve several calls: one run
                self._run = create_run(sys.argv[0] or "notebook", self._out)
            return Recorder(self._run, self._counters, is_alone=True)
        except OSError as error:
            self._notify(
                f"cannot write a recording to {self._out or 'memfit-runs/'} ({error}). "
                "Training continues without one; name a folder with MemoryMonitor(out=...)."
            )
            return None

    def _stop(self) -> None:
        """Without a supervisor, ends the recording between two calls: no thread is left."""
        recorder = self._recorder
        if (
            recorder is None
            or recorder is process_recorder.get_recorder()
            or recorder.is_open("fit")
        ):
            return
        recorder.close()
        if recorder.error is not None:
            self._notify(f"the recording in {recorder.run} has gaps ({recorder.error}).")
        else:
            self._notify(f"memory recorded in {recorder.run}; see it with: memfit report")

    def _notify(self, sentence: str) -> None:
        if not self._has_notified:
            self._has_notified = True
            say(sentence)


def _figures(sample: Sample) -> dict[str, float]:
    process: ProcessMemory = sample.process
    peak_bytes = max(process.peak_rss_bytes or 0, process.rss_bytes)
    figures = {"memory_mb": process.rss_bytes / 1e6, "memory_peak_mb": peak_bytes / 1e6}
    devices = [device for device in sample.devices if not device.on_host]
    if devices:
        figures["device_memory_mb"] = sum(device.in_use_bytes for device in devices) / 1e6
    if devices and all(device.peak_bytes is not None for device in devices):
        figures["device_memory_peak_mb"] = sum(device.peak_bytes or 0 for device in devices) / 1e6
    return {name: round(value, 1) for name, value in figures.items()}
