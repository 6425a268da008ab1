"""Tensors out of files that somebody else may have made."""

import io
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.storage.tensors import DamagedFileError, load_foreign_tensors, save_tensors


def archive(content: bytes, **changed: bytes) -> bytes:
    """The archive with other contents of members."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w") as new:
        for one in old.infolist():
            new.writestr(one.filename, changed.get(one.filename.rpartition("/")[2], old.read(one)))
    return written.getvalue()


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    shared = torch.arange(12.0)
    state: dict[str, Any] = {
        "learner": OrderedDict(
            weight=torch.randn(3, 4, 2).mT, view=shared[2:8].view(2, 3), same=shared, none=torch.zeros(0, 5),
            scalar=torch.tensor(7), flags=torch.tensor([True, False]), half=torch.ones(3).half(),
            double=torch.rand(2).double(), brain=torch.rand(5).bfloat16(),
        ),
        "points": torch.randn(2, 3, 4),
        "words": {"a": 1, "b": None, "c": 0.5, "d": (1, "x"), "e": -70_000, "f": 2**40},
    }  # fmt: skip
    save_tensors(state, tmp_path / "file.pt")
    found = load_foreign_tensors(tmp_path / "file.pt")
    assert found["words"] == state["words"]
    torch.testing.assert_close(found["points"], state["points"], rtol=0, atol=0)
    for name, tensor in state["learner"].items():
        assert found["learner"][name].dtype == tensor.dtype
        assert torch.equal(found["learner"][name], tensor)


def test_a_state_dict_comes_back(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    save_tensors({"learner": net.state_dict()}, tmp_path / "file.pt")
    other = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict(load_foreign_tensors(tmp_path / "file.pt")["learner"])
    for name, tensor in net.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


NUMBER = (2 * 10**9).to_bytes(4, "little")


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02cbuiltins\nbytearray\nJ" + NUMBER + b"\x85R.",
        b"\x80\x02ctorch\nTensor\nJ" + NUMBER + b"\x85R.",
        b"\x80\x02ctorch\nFloatStorage\nJ" + NUMBER + b"\x85R.",
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.",
        b"\x80\x02}r\xff\xff\xff\x7f",
        b"\x80\x02})K\x01s.",
        b"\x80\x02}",
        b"",
    ],
    ids=["bytearray", "tensor", "storage", "system", "memo", "key", "no end", "empty"],
)
def test_a_pickle_does_nothing_but_put_tensors_into_dicts(pickled: bytes, tmp_path: Path) -> None:
    save_tensors({"a": torch.zeros(3)}, tmp_path / "file.pt")
    path = tmp_path / "other.pt"
    path.write_bytes(archive((tmp_path / "file.pt").read_bytes(), **{"data.pkl": pickled}))
    with pytest.raises(DamagedFileError, match=r"other\.pt is damaged"):
        load_foreign_tensors(path)


def test_a_tensor_has_no_more_elements_than_its_storage(tmp_path: Path) -> None:
    save_tensors({"a": torch.zeros(1).expand(1000)}, tmp_path / "file.pt")
    with pytest.raises(DamagedFileError):
        load_foreign_tensors(tmp_path / "file.pt")
    save_tensors({"a": torch.zeros(300)}, tmp_path / "file.pt")
    content = (tmp_path / "file.pt").read_bytes()
    (tmp_path / "file.pt").write_bytes(archive(content, **{"0": bytes(400)}))
    with pytest.raises(DamagedFileError):
        load_foreign_tensors(tmp_path / "file.pt")


def test_a_compressed_archive_is_refused_before_it_is_expanded(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "file.pt", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", bytes(10**7))
        bomb.writestr("archive/byteorder", "little")
    with pytest.raises(DamagedFileError, match="without compression"):
        load_foreign_tensors(tmp_path / "file.pt")
