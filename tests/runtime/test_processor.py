import torch

from fairall.runtime.processor import prepare_processor


def test_threads_are_those_asked_for_and_numbers_next_to_zero_are_zero() -> None:
    before = torch.get_num_threads()
    try:
        prepare_processor(2)
        assert torch.get_num_threads() == 2
        assert (torch.full((100,), 1e-30) * 1e-10 == 0.0).all()
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
    assert (torch.full((100,), 1e-30) * 1e-10 > 0.0).all()
