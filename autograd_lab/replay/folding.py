"""Turn many cells into few: by module path, by repeats, and at last by stretches.

A fold takes a run of cells that follow each other, so folding never makes a cycle. Of all foldings
that fit, the one that shows most is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from autograd_lab.recording import Recording

from .cells import Cell, CellGraph

__all__ = ["Folded", "box_count", "fold"]

LONGEST_PERIOD = 16
_DIGITS = re.compile(r"\d+")


class _Run(NamedTuple):
    """Cells from `first` up to, not including, `last` of the sequence that become one."""

    first: int
    last: int
    title: str
    token: tuple[object, ...]
    times: int = 1


class Folded(NamedTuple):
    """A graph with the cells of the one before that each of its cells stands for."""

    graph: CellGraph
    members: list[list[int]]


def box_count(cells: Iterable[Cell]) -> int:
    """Boxes that these cells are drawn as."""
    return sum(
        bool(cell.ops or cell.tensors)
        + (len(cell.lanes) if cell.kind == "fold" else sum(map(len, cell.lanes.values())))
        for cell in cells
    )


def fold(
    graph: CellGraph, recording: Recording, max_nodes: int, *, is_inside: bool = False
) -> Folded:
    """Return a graph of at most `max_nodes` boxes, or of one fold where that is too few.

    is_inside  the graph is what one fold hides: it is never folded into that one again, rather
               drawn with more boxes
    """
    whole = Folded(graph, [[number] for number in range(len(graph.cells))])
    if box_count(graph.cells) <= max_nodes:
        return whole
    folder = _Folder(graph, recording)
    fits = [
        (count, runs)
        for runs in folder.foldings()
        if (count := folder.count(runs)) <= max_nodes and not (is_inside and len(runs) < 2)
    ]
    if fits:
        _, best = max(fits, key=lambda fit: (fit[0], any(run.times > 1 for run in fit[1])))
        return folder.folded(best, absorb_shared=False)
    stretches = folder.stretches(max_nodes)
    if is_inside and len(stretches) < 2:
        return whole
    return folder.folded(stretches, absorb_shared=True)


class _Folder:
    """The calls and nodes of a graph in sequence, and who uses each leaf and input."""

    def __init__(self, graph: CellGraph, recording: Recording) -> None:
        self.graph = graph
        self.recording = recording
        self.sequence = [n for n, cell in enumerate(graph.cells) if not _is_tensor(cell)]
        self.place = {cell: place for place, cell in enumerate(self.sequence)}
        self.users: dict[int, list[int]] = {
            n: [] for n, cell in enumerate(graph.cells) if _is_tensor(cell)
        }
        for before, after in graph.links:
            if before in self.users and after in self.place:
                self.users[before].append(self.place[after])

    def foldings(self) -> Iterator[list[_Run]]:
        """Ways to fold: modules, coarse before fine, then single calls; each also with repeats."""
        depth = max((_depth(self.graph.cells[n].module) for n in self.sequence), default=0)
        ways = [self._by(_prefix_of(count)) for count in range(1, depth + 1)]
        ways.append(self._by(lambda cell: None))
        yield from ways
        yield from map(_repeats, ways)

    def stretches(self, max_nodes: int) -> list[_Run]:
        """Equal stretches, as many as fit."""
        lanes = {lane for cell in self.graph.cells for lane in cell.lanes}
        size = -(-len(self.sequence) // max(1, max_nodes // (1 + len(lanes))))
        starts = range(0, len(self.sequence), max(1, size))
        ends = [*starts[1:], len(self.sequence)]
        return [
            _Run(first=first, last=last, title=self._kinds(first, last), token=())
            for first, last in zip(starts, ends, strict=True)
        ]

    def count(self, runs: Sequence[_Run]) -> int:
        """Boxes of a folding."""
        cells = self.graph.cells
        run_of = _run_of(runs, len(self.sequence))
        lanes: list[set[int]] = [set() for _ in runs]
        ops = [False] * len(runs)
        for place, number in enumerate(self.sequence):
            lanes[run_of[place]].update(cells[number].lanes)
            ops[run_of[place]] |= bool(cells[number].ops)
        total = 0
        for number, users in self.users.items():
            inside = {run_of[place] for place in users}
            if len(inside) == 1:
                (run,) = inside
                lanes[run].update(cells[number].lanes)
            else:
                total += 1 + sum(map(len, cells[number].lanes.values()))
        return total + sum(map(len, lanes)) + sum(ops)

    def folded(self, runs: Sequence[_Run], *, absorb_shared: bool) -> Folded:
        """The graph in which each run is one cell with the leaves and inputs that only it uses."""
        cells = self.graph.cells
        run_of = _run_of(runs, len(self.sequence))
        members: list[list[int]] = [self.sequence[run.first : run.last] for run in runs]
        kept: list[tuple[float, int]] = []
        for number, users in self.users.items():
            inside = sorted({run_of[place] for place in users})
            if len(inside) == 1 or (inside and absorb_shared):
                members[inside[0]].append(number)
            else:
                kept.append((inside[0] - 0.5 if inside else -1, number))
        new: list[tuple[float, list[int], Cell]] = [(at, [n], cells[n]) for at, n in kept]
        for at, (run, inside) in enumerate(zip(runs, members, strict=True)):
            new.append((at, inside, _merged([cells[n] for n in inside], run)))
        new.sort(key=lambda item: item[0])
        number_of = {old: n for n, (_, olds, _) in enumerate(new) for old in olds}

        def moved(links: Iterable[tuple[int, int]]) -> dict[tuple[int, int], None]:
            pairs = ((number_of[before], number_of[after]) for before, after in links)
            return {pair: None for pair in pairs if pair[0] < pair[1]}

        folded = CellGraph(
            cells=[cell for _, _, cell in new],
            links=list(moved(self.graph.links)),
            forward=set(moved(self.graph.forward)),
        )
        return Folded(folded, [sorted(olds) for _, olds, _ in new])

    def _by(self, key: Callable[[Cell], str | None]) -> list[_Run]:
        """Runs of neighbours with the same key and epoch; cells without a key stay alone."""
        runs: list[_Run] = []
        last: object = None
        for place, number in enumerate(self.sequence):
            cell = self.graph.cells[number]
            title = key(cell)
            if title is not None and (title, cell.epoch) == last:
                run = runs.pop()
                first, count = run.first, place + 1 - run.first
            else:
                first, count = place, 1
            name = self._name(cell) if title is None else title
            token = (_DIGITS.sub("*", name), count, cell.epoch)
            runs.append(_Run(first=first, last=place + 1, title=name, token=token))
            last = None if title is None else (title, cell.epoch)
        return runs

    def _name(self, cell: Cell) -> str:
        if cell.ops:
            return self.recording.ops[cell.ops[0]].name
        return self.recording.nodes[next(iter(cell.lanes.values()))[0]].short_name

    def _kinds(self, first: int, last: int) -> str:
        names = dict.fromkeys(self._name(self.graph.cells[n]) for n in self.sequence[first:last])
        return ", ".join(names)


def _repeats(runs: Sequence[_Run]) -> list[_Run]:
    """Fold what follows itself with a period of up to 16 runs."""
    tokens = [run.token for run in runs]
    folded: list[_Run] = []
    at = 0
    while at < len(runs):
        period, times = max(
            ((period, _times(tokens, at, period)) for period in range(1, LONGEST_PERIOD + 1)),
            key=lambda found: (found[0] * found[1] if found[1] > 1 else 0, -found[0]),
        )
        if times < 2:
            folded.append(runs[at])
            at += 1
            continue
        names = list(dict.fromkeys(str(token[0]) for token in tokens[at : at + period]))
        first, last = runs[at].first, runs[at + period * times - 1].last
        title = ", ".join(names)
        folded.append(_Run(first=first, last=last, title=title, token=(title, times), times=times))
        at += period * times
    return folded


def _times(tokens: Sequence[object], at: int, period: int) -> int:
    """How often the `period` tokens at `at` follow themselves, themselves included."""
    end = at + period
    while end < len(tokens) and tokens[end] == tokens[end - period]:
        end += 1
    return (end - at) // period


def _merged(cells: Sequence[Cell], run: _Run) -> Cell:
    if len(cells) == 1 and sum(map(len, cells[0].lanes.values())) <= len(cells[0].lanes):
        return cells[0]
    whole = Cell(kind="fold", module=cells[0].module, epoch=cells[0].epoch)
    whole.title, whole.times = run.title, run.times
    for cell in cells:
        whole.ops += cell.ops
        whole.tensors += cell.tensors
        for lane, nodes in cell.lanes.items():
            whole.lanes.setdefault(lane, []).extend(nodes)
    return whole


def _run_of(runs: Sequence[_Run], count: int) -> list[int]:
    run_of = [0] * count
    for number, run in enumerate(runs):
        for place in range(run.first, run.last):
            run_of[place] = number
    return run_of


def _is_tensor(cell: Cell) -> bool:
    return cell.kind in ("leaf", "input")


def _depth(module: str | None) -> int:
    return module.count(".") + 1 if module else 0


def _prefix_of(depth: int) -> Callable[[Cell], str | None]:
    """The first `depth` names of a cell's module path; None outside of modules and in the root."""
    return lambda cell: ".".join(cell.module.split(".")[:depth]) if cell.module else None
