"""The pictures of the documents: those that are linked are there and made by `make pictures`, which draws them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pictures.__main__ import FOLDER, PICTURES, main

ROOT = Path(__file__).parents[2]


def test_every_picture_is_linked_and_every_link_is_a_picture() -> None:
    texts = [path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    linked = {name for text in texts for name in re.findall(r"\((?:docs/)?pictures/(\w+)\.svg\)", text)}
    made = {picture.name for picture in PICTURES}
    assert linked == made == {path.stem for path in FOLDER.glob("*.svg")}


@pytest.mark.slow
async def test_all_pictures_are_drawn(tmp_path: Path) -> None:
    await main(tmp_path)
    for picture in PICTURES:
        svg = (tmp_path / f"{picture.name}.svg").read_text()
        assert "waiting" not in svg
        assert len(svg) > 20_000
