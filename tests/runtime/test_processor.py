from pathlib import Path

import pytest
import torch

from fairall.runtime import processor
from fairall.runtime.processor import available_memory, prepare_processor


def test_torch_has_one_thread_and_numbers_next_to_zero_are_zero() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        prepare_processor()
        assert torch.get_num_threads() == 1
        assert (torch.full((100,), 1e-30) * 1e-10 == 0.0).all()
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
    assert (torch.full((100,), 1e-30) * 1e-10 > 0.0).all()


@pytest.mark.parametrize(("limit", "available"), [("max\n", 8 << 20), ("4096\n", 4096), (None, 8 << 20)])
def test_available_memory_is_that_of_the_machine_and_the_container(
    limit: str | None, available: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"MEMINFO": "MemTotal: 16384 kB\nMemAvailable:    8192 kB\n", "CONTAINER_LIMIT": limit}
    for name, text in told.items():
        monkeypatch.setattr(processor, name, tmp_path / name)
        if text is not None:
            (tmp_path / name).write_text(text)
    assert available_memory() == available
    (tmp_path / "MEMINFO").unlink()
    assert available_memory() is None
