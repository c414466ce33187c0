"""The settings dialog: what each setting is, where it comes from, and what can be changed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from collectors.alerts.alert_settings import DEFAULT_RULES
from engine.replacing import replace
from tui.app.appearance import SPANS_S
from tui.app.sampling_choices import INTERVALS_S, TAG_WAIT_CHOICES, SamplingKeys
from tui.app.settings_in_force import at_next_start
from tui.kept import AxisChoice, Density
from tui.screens.settings.shown_setting import Origin, ShownSetting
from tui.settings import GLYPHS
from tui.text.format import SECOND_NS, span_text

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

_DEFAULT_INTERVAL_S = 1.0
_ON_OFF = ("true", "false")


class SettingsEditor:
    """Lists the settings, and changes some of them for this session."""

    def __init__(self, app: LunscopeApp, sampling: SamplingKeys) -> None:
        self._app, self._state, self._settings = app, app.app_state, app.settings
        self._sampling = sampling

    def action_view_settings(self) -> None:
        """All settings, where they come from, and what can be changed."""
        from tui.screens.settings.screen import SettingsDialog  # noqa: PLC0415 (it can wait until it is asked for)

        self._app.push_screen(SettingsDialog(self.shown, self._settings.now.file))

    def shown(self) -> tuple[ShownSetting, ...]:
        """All settings as they are now: those of the file first, then those of options and keys."""
        return (*self._of_file(), *self._of_alerts(), *self._of_session())

    def _of_file(self) -> Iterator[ShownSetting]:
        settings, start = self._settings.now, self._settings.at_start
        theme, own = self._app.theme, self._app.own_themes
        yield ShownSetting(
            "theme",
            theme,
            self._theme_origin(),
            "Colours. A theme of your own is a file in themes/ beside the settings.",
            "a name of the list",
            (*own, *sorted(set(self._app.available_themes) - set(own))),
            functools.partial(setattr, self._app, "theme"),
            f'"{theme}"',
        )
        yield ShownSetting(
            "glyphs",
            start.glyphs,
            self._from_start("glyphs"),
            "Characters of curves, marks and frames. From the next start on.",
            ", ".join(GLYPHS),
        )
        yield ShownSetting(
            "hints",
            str(start.hints).lower(),
            self._from_start("hints"),
            "Whether the screens show a line with three keys until Esc hides it once. From the next start on.",
            ", ".join(_ON_OFF),
        )
        yield ShownSetting(
            "keys",
            f"{len(settings.keys)} changed",
            # One of two actions with one key has it: what was given is in force all the same.
            self._named("keys"),
            "Keys of actions. Read again when the file changes.",
            '[keys] with lines such as session.pause = "p"',
        )
        yield ShownSetting(
            "aliases",
            f"{len(start.reading.aliases)}",
            self._from_start("aliases"),
            "Names of LUNs, ports and tapes. From the next start on.",
            '[aliases] with lines such as "36000c29..." = "db data 1"',
        )
        yield ShownSetting(
            "fabric_counters",
            str(start.reading.fabric_counters).lower(),
            self._from_start("fabric_counters"),
            "Whether error counters of FC, SAS and NVMe ports are read. From the next start on.",
            ", ".join(_ON_OFF),
        )
        yield ShownSetting(
            "exact_time",
            f"most_cost_pct {start.reading.most_cost_pct:g}" + (start.reading.btf and f", btf {start.reading.btf}"),
            self._from_start("exact_time"),
            "Share of a CPU above which exact time stops, 0 never; types of the kernel. From the next start on.",
            '[exact_time] with most_cost_pct = 0 to 100, btf = "FILE"',
        )
        yield ShownSetting(
            "mouse",
            str(start.asks_for_mouse).lower(),
            Origin.OPTION if start.no_mouse else self._from_start("mouse"),
            "Whether the mouse is asked for; without it the terminal selects text. From the next start on.",
            ", ".join(_ON_OFF),
        )
        yield ShownSetting(
            "screen.view",
            start.view or "as left",
            self._from_start("screen.view", "screen" if start.view else ""),
            "View at the start; as left: the one chosen last. From the next start on.",
            f"[screen] with view = one of {', '.join(Density)}",
        )
        yield ShownSetting(
            "screen.save_folder",
            "default" if start.save_folder is None else str(start.save_folder),
            self._from_start("screen.save_folder", "screen" if start.save_folder else ""),
            "Folder of saved screens; default: the first of the user's that can be written. From the next start on.",
            '[screen] with save_folder = "~/lunscope"',
        )

    def _of_alerts(self) -> Iterator[ShownSetting]:
        service = self._settings.alerts
        if service is None:
            return
        alerts = service.settings
        in_file = self._given("alerts")
        own = [rule for rule in alerts.rules if rule not in DEFAULT_RULES]
        only_given = bool(own) and len(own) == len(service.given_rules)
        yield ShownSetting(
            "alerts.rules",
            f"{len(alerts.rules)}",
            Origin.OPTION if only_given else in_file if own else Origin.DEFAULT,
            "Rules of alerts, listed with their state by the key of alerts. Read again when the file changes.",
            '[alerts.rules] with lines such as slow = "disks await_ms>20ms for 10s"; --alert',
        )
        yield ShownSetting(
            "alerts.bell",
            str(alerts.bell).lower(),
            Origin.SESSION if "alerts.bell" in self._settings.changed_here else in_file,
            "Whether the terminal's bell rings when an alert is raised.",
            ", ".join(_ON_OFF),
            _ON_OFF,
            self._set_bell,
            str(alerts.bell).lower(),
        )
        yield ShownSetting(
            "alerts.command",
            " ".join(alerts.command) or "none",
            Origin.OPTION if service.given_command else in_file if alerts.command else Origin.DEFAULT,
            "Program that is run for each alert. From the next start on.",
            "a command line; --alert-command",
        )

    def _of_session(self) -> Iterator[ShownSetting]:
        state = self._state
        if not state.transport.seekable:
            yield ShownSetting(
                "--interval",
                f"{state.interval_s:g} s",
                self._session_origin(state.interval_changed, state.interval_s != _DEFAULT_INTERVAL_S),
                "Time between samples.",
                "0.1 s to 60 s",
                tuple(f"{each:g} s" for each in INTERVALS_S),
                lambda text: self._sampling.use_interval(float(text.removesuffix(" s"))),
            )
            yield ShownSetting(
                "tag waits",
                self._sampling.tags.name,
                self._session_origin(self._sampling.tags.name != TAG_WAIT_CHOICES[0]),
                "Tracing of waits for a free tag, exact time only: always, never, or while a queue is full.",
                ", ".join(TAG_WAIT_CHOICES),
                TAG_WAIT_CHOICES,
                self._sampling.tags.use,
            )
        yield ShownSetting(
            "chart history",
            span_text(state.span_ns / SECOND_NS),
            self._session_origin(state.span_ns != SPANS_S[1] * SECOND_NS),
            "Time that the charts show.",
            ", ".join(map(span_text, SPANS_S)),
            tuple(map(span_text, SPANS_S)),
            self._set_span,
        )
        yield ShownSetting(
            "latency axis",
            state.latency_axis,
            self._session_origin(state.latency_axis is not AxisChoice.AUTO),
            "Axis of the charts of latency.",
            ", ".join(AxisChoice),
            tuple(AxisChoice),
            lambda text: setattr(state, "latency_axis", AxisChoice(text)),
        )
        if state.frame is not None and not state.transport.seekable:
            tier = state.frame.topology.host.tier.name.lower()
            yield ShownSetting("--tier", tier, Origin.HOST, "How figures are obtained.", "set at the start")
        recorded = state.recording
        yield ShownSetting(
            "--record",
            "nothing" if recorded is None else recorded.path,
            Origin.DEFAULT if recorded is None else Origin.OPTION,
            "File that the session is recorded to.",
            "set at the start",
        )

    def _given(self, name: str) -> Origin:
        return Origin.FAULTY if name in self._settings.now.failed else self._named(name)

    def _named(self, name: str) -> Origin:
        return Origin.FILE if name in self._settings.now.given else Origin.DEFAULT

    def _from_start(self, name: str, section: str = "") -> Origin:
        changed = at_next_start(self._settings.at_start, self._settings.now)
        return Origin.START if name in changed else self._given(section or name)

    def _session_origin(self, changed: bool, given: bool = False) -> Origin:
        return Origin.SESSION if changed else Origin.OPTION if given else Origin.DEFAULT

    def _theme_origin(self) -> Origin:
        theme, settings = self._app.theme, self._settings
        if theme == settings.now.theme_option:
            return Origin.OPTION
        if theme == settings.now.theme:
            return Origin.FILE
        return Origin.DEFAULT if theme == settings.first_theme else Origin.SESSION

    def _set_bell(self, text: str) -> None:
        if self._settings.alerts is not None:
            self._settings.alerts.settings = replace(self._settings.alerts.settings, bell=text == "true")
            self._settings.changed_here.add("alerts.bell")

    def _set_span(self, text: str) -> None:
        spans = {span_text(span_s): span_s for span_s in SPANS_S}
        self._state.span_ns = spans[text] * SECOND_NS
