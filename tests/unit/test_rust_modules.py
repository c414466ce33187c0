"""Imports between the modules of the Rust core have no circle; the reader of them is tested on small trees."""

from pathlib import Path

import pytest

from tests.rust_modules import find_circles, read_imports

_SOURCES = Path(__file__).parents[2] / "engine" / "native" / "src"


def _tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.mark.slow
def test_no_circle_in_the_rust_core() -> None:
    imports = read_imports(_SOURCES)
    assert "crate::load::epochs::epoch" in imports["crate::load::epochs::timeline"]
    assert find_circles(imports) == []


@pytest.mark.slow
def test_no_circle_of_folders_in_the_load_engine() -> None:
    folders: dict[str, set[str]] = {}
    for module, others in read_imports(_SOURCES).items():
        named = {"::".join(each.split("::")[:3]) for each in others if each.startswith("crate::load::")}
        folders.setdefault("::".join(module.split("::")[:3]), set()).update(named)
    assert "crate::load::counts" in folders["crate::load::running"]
    assert find_circles({folder: others - {folder} for folder, others in folders.items()}) == []


def test_a_circle_is_found_over_several_modules(tmp_path: Path) -> None:
    tree = _tree(
        tmp_path,
        {
            "lib.rs": "mod load;\nmod clock;",
            "clock.rs": "pub fn now() -> u64 { 0 }",
            "load/mod.rs": "mod run;\nmod stop;\nmod epoch;\npub use run::Run;",
            "load/run.rs": "use super::epoch::Epoch;\nuse crate::clock;",
            "load/epoch.rs": "use crate::load::{\n    stop::{self, Stop as End},\n};",
            "load/stop.rs": "fn end(run: &super::run::Run) {}",
        },
    )
    assert find_circles(read_imports(tree)) == [["crate::load::epoch", "crate::load::run", "crate::load::stop"]]


def test_declarations_tests_texts_and_visibilities_are_no_imports(tmp_path: Path) -> None:
    tree = _tree(
        tmp_path,
        {
            "lib.rs": "mod one;\nmod two;\n/* crate::one::First */",
            "one.rs": (
                "mod inner;\n"
                "#[cfg(test)]\nmod tests;\n"
                "// use crate::two::Second;\n"
                "pub(in crate::two) struct First;\n"
                'const TEXT: &str = "use crate::two::{Second}; // \'";\n'
                "const QUOTE: char = '\"';\n"
                "fn life<'a>(of: &'a str) -> std::io::Result<()> { Ok(()) }\n"
                "#[cfg(test)]\nuse crate::two::Second;\n"
                '#[cfg(test)]\nmod more {\n    use super::super::two::Second;\n    fn at() { "}" }\n}\n'
            ),
            "one/inner.rs": "use super::super::two::Second;\nuse super::First;",
            "one/tests.rs": "use super::*;\nuse crate::two::Second;",
            "two.rs": "use crate::one::First;\npub struct Second;",
        },
    )
    assert read_imports(tree) == {
        "crate": set(),
        "crate::one": set(),
        "crate::one::inner": {"crate::one", "crate::two"},
        "crate::two": {"crate::one"},
    }
