"""Ratios in one run against plain PyTorch and against peers; nothing here is asserted by a test."""
