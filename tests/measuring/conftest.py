from pathlib import Path
from tempfile import TemporaryDirectory

from fairall.display.progress import Display
from fairall.online.training import Training
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import no_cache, training_of


def trained(*words: str) -> Training:
    """A run of random decisions, unless other words are given."""
    training = training_of("model=random", *words)
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder, "checkpoint.pt"), "none", seconds=float("inf"))
        training.run(checkpoint, no_cache(), Display(progress_only=True))
    return training
