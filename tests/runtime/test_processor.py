import torch

from fairall.runtime.processor import prepare_processor


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
