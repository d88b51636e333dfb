"""The picture at every step of a recording: frames, gradient flow, layout. No torch."""

from __future__ import annotations

from .cursor import Cursor
from .flow import FlowFinding, FlowRow, GradientFlow, ParameterRow, gradient_flow
from .frame import Frame, SavedAlive, frame_at, whole_number
from .given import require_recording
from .insides import GraphView, layout_views
from .layout import collector_paused, layout_graph
from .match import known_modules, known_names, module_of, names_of_node, names_of_op
from .placed import GraphLayout, Lane, PlacedEdge, PlacedNode

__all__ = [
    "Cursor",
    "FlowFinding",
    "FlowRow",
    "Frame",
    "GradientFlow",
    "GraphLayout",
    "GraphView",
    "Lane",
    "ParameterRow",
    "PlacedEdge",
    "PlacedNode",
    "SavedAlive",
    "collector_paused",
    "frame_at",
    "gradient_flow",
    "known_modules",
    "known_names",
    "layout_graph",
    "layout_views",
    "module_of",
    "names_of_node",
    "names_of_op",
    "require_recording",
    "whole_number",
]
