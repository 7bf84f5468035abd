"""NVML needs a card, so a stand-in with the calls of nvidia-ml-py 12 is handed over."""

from types import SimpleNamespace

from memfit.measure.nvidia import NvidiaMemory, NvidiaReader

GB = 10**9


class FakeNvml:
    """A machine with the cards given, each a dict: name, used, total, processes."""

    class NVMLError(Exception):
        pass

    def __init__(self, *cards):
        self._cards = cards

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self._cards)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return self._cards[index]

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return handle["name"]

    def nvmlDeviceGetMemoryInfo(self, handle):  # noqa: N802
        if handle["total"] is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(used=handle["used"], total=handle["total"])

    def nvmlDeviceGetComputeRunningProcesses(self, handle):  # noqa: N802
        if handle["processes"] is None:
            raise self.NVMLError("Insufficient Permissions")
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=used_bytes)
            for pid, used_bytes in handle["processes"].items()
        ]


def card(name="NVIDIA A100-SXM4-40GB", used=10 * GB, total=40 * GB, processes=None):
    return {"name": name, "used": used, "total": total, "processes": processes}


def test_each_device_is_read_with_what_all_use_and_what_is_ours():
    nvml = FakeNvml(
        card("NVIDIA A100-SXM4-40GB", 10 * GB, 40 * GB, {7: 2 * GB, 8: GB, 9: 5 * GB}),
        card("NVIDIA T4", GB, 15 * GB, {9: GB}),
    )

    assert NvidiaReader(nvml).read(pids=[7, 8]) == (
        NvidiaMemory("NVIDIA A100-SXM4-40GB", 10 * GB, 40 * GB, ours_bytes=3 * GB),
        NvidiaMemory("NVIDIA T4", GB, 15 * GB, ours_bytes=0),
    )


def test_what_is_ours_is_unknown_where_the_driver_hides_processes():
    nvml = FakeNvml(card(processes=None))

    assert NvidiaReader(nvml).read(pids=[7])[0].ours_bytes is None


def test_what_is_ours_is_unknown_where_the_driver_hides_their_size():
    nvml = FakeNvml(card(processes={7: GB, 8: None}))

    assert NvidiaReader(nvml).read(pids=[7, 8])[0].ours_bytes is None


def test_a_process_of_somebody_else_without_a_size_does_not_hide_ours():
    nvml = FakeNvml(card(processes={7: GB, 8: None}))

    assert NvidiaReader(nvml).read(pids=[7])[0].ours_bytes == GB


def test_a_name_in_bytes_is_read_as_text():
    nvml = FakeNvml(card(name=b"Tesla K80"))

    assert NvidiaReader(nvml).read()[0].name == "Tesla K80"


def test_a_device_whose_memory_the_driver_does_not_count_does_not_hide_the_others():
    nvml = FakeNvml(card("NVIDIA GB10", total=None), card("NVIDIA T4", total=15 * GB))

    devices = NvidiaReader(nvml).read()

    assert "NVIDIA T4" in [device.name for device in devices]
