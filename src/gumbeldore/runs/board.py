"""Event files for TensorBoard (`pip install "gumbeldore[tensorboard]"`), in a folder of the run's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gumbeldore.errors import SettingsError
from gumbeldore.training.algorithm import Epoch
from gumbeldore.training.state import Progress

FOLDER = "tensorboard"


@contextmanager
def board(folder: Path, done: int, wanted: bool) -> Iterator[Callable[[Progress | Epoch], None]]:
    """A function that writes the metrics of epochs, if it is wanted. `done` epochs were there before: what came later is dropped."""
    if not wanted:
        yield lambda event: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise SettingsError(f'--tensorboard needs a package: pip install "gumbeldore[tensorboard]" ({error}).') from error
    with SummaryWriter(str(folder / FOLDER), purge_step=done + 1) as writer:

        def note(event: Progress | Epoch) -> None:
            if not isinstance(event, Epoch):
                return
            for name, value in event.metrics().items():
                if name != "epoch" and value is not None:
                    writer.add_scalar(name.replace("seconds_", "seconds/"), value, event.index)
            writer.flush()

        yield note
