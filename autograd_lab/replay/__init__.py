"""The picture at every step of a recording: frames, gradient flow, layout. No torch."""

from __future__ import annotations

from .cursor import Cursor
from .flow import FlowFinding, FlowRow, GradientFlow, ParameterRow, gradient_flow
from .frame import Frame, SavedAlive, frame_at
from .given import require_recording
from .layout import GraphLayout, Lane, PlacedEdge, PlacedNode, layout_graph

__all__ = [
    "Cursor",
    "FlowFinding",
    "FlowRow",
    "Frame",
    "GradientFlow",
    "GraphLayout",
    "Lane",
    "ParameterRow",
    "PlacedEdge",
    "PlacedNode",
    "SavedAlive",
    "frame_at",
    "gradient_flow",
    "layout_graph",
    "require_recording",
]
