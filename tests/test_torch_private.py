"""Every private torch name works as its docstring says, and a missing one is named."""
