"""The operator's settings of readers in `config.toml`: aliases, and counters not to be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from engine.config import config_file
from engine.text import safe_text, short_text
from engine.toml_text import read_toml

SECTIONS = frozenset({"aliases", "exact_time", "fabric_counters"})
"""Settings read here; all others belong to the screens."""
LONGEST_ALIAS = 64
TIERS = ("auto", "exact", "sampled", "kernel")
"""What may be asked for; "auto" is the best available."""
TYPES_VARIABLE = "LUNSCOPE_BTF"
"""Names the file with the kernel's types to the core (engine/native/src/exact/types.rs)."""
LONGEST_ATTACH_S = 30.0
"""How long attaching may take where exact time is required, until it is given up."""


MOST_COST_PCT = 5.0
"""Default of the share of a CPU, and of the CPU time that is used, which exact time may take."""


class ReadingSettings(Struct, frozen=True):
    """Settings in force; invalid ones are ignored and listed in `problems`."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """Aliases by identity in the form of `plain_identity`."""
    fabric_counters: bool = True
    """Whether error counters of FC, SAS and NVMe ports may be read: some drivers query their firmware for each."""
    problems: tuple[str, ...] = ()
    most_cost_pct: float = MOST_COST_PCT
    """Share of a CPU, and of all CPU time that is used, above which exact time is stopped; 0: never."""
    btf: str = ""
    """File with the kernel's types, for a kernel that has none of its own; empty: none is named."""

    def alias_of(self, *identities: str) -> str:
        """Return the alias of one of these identities; empty if there is none."""
        plain = (plain_identity(identity) for identity in identities if identity)
        return next((self.aliases[identity] for identity in plain if identity in self.aliases), "")


def plain_identity(identity: str) -> str:
    """Normalize an identity, so that all its spellings are equal.

    sysfs has naa.6000..., udev and multipath 36000... (prefixed with the designator type, SPC-4, 7.8.6), a map's
    uuid mpath-36000..., and WWPNs may be 0x10000090..., 10:00:00:90:... or plain.
    """
    plain = identity.strip().lower().removeprefix("mpath-").removeprefix("0x")
    for start, type_ in (("naa.", "3"), ("eui.", "2"), ("t10.", "1")):
        if plain.startswith(start):
            return type_ + plain.removeprefix(start)
    parts = plain.split(":")
    is_wwn = len(parts) == 8 and all(len(part) == 2 for part in parts)
    return "".join(parts) if is_wwn else plain


def load_reading_settings(path: Path | None = None) -> ReadingSettings:
    """Read the settings; errors in the file are listed in `problems` and do not prevent the start."""
    file = path or config_file()
    try:
        document = read_toml(file)
    except FileNotFoundError:
        return ReadingSettings()
    except (OSError, ValueError) as error:
        return ReadingSettings(problems=(f"{file}: {short_text(str(error))}",))
    problems: list[str] = []
    aliases = _aliases(document.get("aliases", {}), file, problems)
    fabric = document.get("fabric_counters", True)
    if not isinstance(fabric, bool):
        problems.append(f"{file}: fabric_counters must be true or false")
        fabric = False
    most_cost_pct, btf = _exact_time(document.get("exact_time", {}), file, problems)
    return ReadingSettings(aliases, fabric, tuple(problems), most_cost_pct, btf)


def _exact_time(section: object, file: Path, problems: list[str]) -> tuple[float, str]:
    """Return the share of a CPU and the file with types."""
    given = section if isinstance(section, dict) else {"": section}
    most_pct, btf = given.get("most_cost_pct", MOST_COST_PCT), given.get("btf", "")
    if given.keys() - {"most_cost_pct", "btf"}:
        problems.append(f"{file}: [exact_time] has most_cost_pct and btf only")
    if isinstance(most_pct, bool) or not isinstance(most_pct, int | float) or not 0 <= most_pct <= 100:
        problems.append(f"{file}: [exact_time] most_cost_pct: give a percentage from 0 (never stopped) to 100")
        most_pct = MOST_COST_PCT
    if not isinstance(btf, str):
        problems.append(f"{file}: [exact_time] btf: give the path of a file with the types of this kernel, in quotes")
        btf = ""
    return float(most_pct), str(Path(btf).expanduser()) if btf else ""


def _aliases(section: object, file: Path, problems: list[str]) -> dict[str, str]:
    if not isinstance(section, dict):
        problems.append(
            f'{file}: aliases must be a table: [aliases] and then lines such as "36000c29..." = "db data 1"'
        )
        return {}
    aliases: dict[str, str] = {}
    for identity, name in section.items():
        plain = plain_identity(identity)
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_ALIAS or safe_text(name) != name:
            problems.append(
                f"{file}: [aliases] {safe_text(identity)}: give a name of 1 to {LONGEST_ALIAS} printable characters"
            )
        elif aliases.setdefault(plain, name.strip()) != name.strip():
            problems.append(f"{file}: [aliases] {safe_text(identity)} has two names: {aliases[plain]!r} and {name!r}")
    return aliases
