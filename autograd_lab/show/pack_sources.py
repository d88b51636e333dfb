"""Turn the source lines of steps into lines with their steps, and the text around them."""

from __future__ import annotations

from typing import Any

from autograd_lab.recording import Recording, SourceLine

__all__ = ["PackSources"]


class PackSources:
    """Lines that some step has; `files` are the stretches of source that hold them."""

    def __init__(self, recording: Recording) -> None:
        self.lines: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = [
            {"name": text.file, "first": text.first_line, "text": list(text.lines)}
            for text in recording.sources
        ]
        self._places: dict[tuple[str, int], int] = {}

    def add(self, source: SourceLine | None, step: int) -> int:
        """The number of a line, which has now this step too; -1 for none."""
        if source is None:
            return -1
        key = source.file, source.line
        if key not in self._places:
            self._places[key] = len(self.lines)
            self.lines.append(
                {
                    "file": self._file(source),
                    "line": source.line,
                    "text": source.text.strip(),
                    "steps": [],
                }
            )
        self.lines[self._places[key]]["steps"].append(step)
        return self._places[key]

    def _file(self, source: SourceLine) -> int:
        """The stretch that holds a line; the line alone where none does."""
        for number, file in enumerate(self.files):
            if file["name"] == source.file and 0 <= source.line - file["first"] < len(file["text"]):
                return number
        self.files.append({"name": source.file, "first": source.line, "text": [source.text]})
        return len(self.files) - 1
