"""The exercises and predictions of the lessons, one module for each lesson."""

from autograd_lab.teach.exercises import backprop, start, tape

__all__ = ["backprop", "start", "tape"]
