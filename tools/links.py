"""Write the repository's address wherever it stands, from its one home in [project.urls].

python tools/links.py https://github.com/someone/repository

Badges name only "owner/name", so that part is replaced too. Run twice, it changes nothing more.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["address_in", "slug_of", "tracked_texts", "write_address"]


def address_in(root: Path) -> str:
    """Return the address that pyproject.toml gives."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return project["urls"]["Repository"]


def slug_of(address: str) -> str:
    """Return "owner/name" of an address, or fail when it is not one."""
    parts = urlsplit(address)
    slug = parts.path.strip("/").removesuffix(".git")
    if parts.scheme != "https" or not re.fullmatch(r"[\w.-]+(/[\w.-]+)+", slug):
        message = (
            f"'{address}' is not a repository's address. It should look like "
            "https://github.com/someone/repository. Give it as make links ADDRESS=…"
        )
        raise SystemExit(message)
    return slug


def tracked_texts(root: Path) -> dict[Path, str]:
    """Return every text file git tracks under `root`, with its text."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    texts = {}
    for name in filter(None, listed.split("\0")):
        path = root / name
        if path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[path] = content.decode("utf-8")
    return texts


def write_address(root: Path, address: str) -> list[Path]:
    """Replace the old address by `address` in all tracked texts and return the files changed."""
    address = address.removesuffix("/").removesuffix(".git")
    old, slug = address_in(root), slug_of(address)
    stale = re.compile(rf"({re.escape(old)}|(?<![\w.-]){re.escape(slug_of(old))})(?![\w-])")
    changed = []
    for path, text in tracked_texts(root).items():
        new = stale.sub(lambda found: address if found[1] == old else slug, text)
        if new != text:
            path.write_bytes(new.encode())
            changed.append(path)
    return changed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the address: make links ADDRESS=https://github.com/someone/repository")
    root = Path(__file__).parents[1]
    for path in write_address(root, sys.argv[1]):
        print(f"changed {path.relative_to(root)}")
