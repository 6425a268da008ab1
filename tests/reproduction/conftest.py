"""Pictures of few pixels, which take less time to draw."""

from collections.abc import Iterator

import pytest

from fairall.display import page


@pytest.fixture(scope="session", autouse=True)
def _coarse_pictures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "DPI", 40)
        yield
