"""Bad input gets a clear error or a clear line, and the user's model and files stay untouched."""
