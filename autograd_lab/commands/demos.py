"""Turn two digits classifiers into trained models, and a step of each into pages and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)
from tqdm import tqdm

from autograd_lab import capture, doors, replay, show, teach
from autograd_lab.commands.outputs import make_folder, writing
from autograd_lab.recording import Recording

__all__ = ["demo", "write_demos"]

STEPS = 300
BATCH = 16


def demo(options: argparse.Namespace) -> int:
    """Train two models, record a step of each, and write pages and pictures into a folder each."""
    write_demos(options.out, doors.device(options.device))
    print(f"\nOpen {options.out / 'convnet' / 'replay.html'} in a browser.")
    return 0


def write_demos(out: Path, device: torch.device) -> list[tuple[str, Path]]:
    """Write both models' folders; the names and the pages."""
    models = {"convnet": teach.convnet, "transformer": teach.transformer}
    for name in models:  # before training: an unusable folder is then told at once
        make_folder(out / name)
    digits = teach.digits()
    counts = f"{len(digits.train_labels)} to learn from, {len(digits.test_labels)} held out"
    print(f"8x8 images of digits: {counts}; device: {device}")
    for name, build in models.items():
        recording = _train_and_record(name, build().to(device), digits, device)
        _write_demo(recording, out / name)
    return [(name, out / name / "replay.html") for name in models]


def _train_and_record(
    name: str, model: torch.nn.Module, digits: teach.Digits, device: torch.device
) -> Recording:
    """Train on batches of 64, then record one more step with Adam, on 16 images."""
    with tqdm(total=STEPS, desc=name, disable=None, leave=False) as bar:
        trained = teach.train(model, digits, steps=STEPS, device=device, on_step=_advance(bar))
    losses, every = trained.losses, max(1, STEPS // 6)
    curve = " ".join(f"{sum(losses[k : k + every]) / every:.2f}" for k in range(0, STEPS, every))
    parameter_count = sum(parameter.numel() for parameter in model.parameters())
    print(f"\n{name}: {parameter_count} parameters, {STEPS} steps")
    print(f"  loss, mean of each {every} steps: {curve}")
    print(f"  accuracy on held-out images: {trained.accuracy:.1%}")
    images, labels = digits.train_images[:BATCH].to(device), digits.train_labels[:BATCH].to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    optimizer.zero_grad()  # else the last training step's gradients would be added to
    model.train()
    with capture.record(model) as recorder:
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    return recorder.recording


def _advance(bar: Any) -> Callable[[int, float], None]:  # noqa: ANN401 (tqdm has no public type for it)
    def on_step(step: int, loss: float) -> None:
        bar.update()
        if step % 20 == 0:
            bar.set_postfix(loss=f"{loss:.2f}")

    return on_step


def _write_demo(recording: Recording, folder: Path) -> None:
    flow = replay.gradient_flow(recording)
    with writing(folder):
        written = [
            recording.save(folder / "recording.json"),
            show.flow_figure(flow).save(folder / "gradient_flow.png"),
            show.to_html(recording, folder / "replay.html"),
        ]
    print("  the recorded step:")
    for record in (recording, flow):
        for line in _first_paragraph(show.describe(record)):
            print(f"    {line}")
    print(f"  wrote {', '.join(path.name for path in written)} into {folder}")


def _first_paragraph(text: str) -> list[str]:
    return text.partition("\n\n")[0].splitlines()
