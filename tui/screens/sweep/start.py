"""Starting searches and presets from the sweep screen: what to measure, what it needs, and what it may write."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

from engine.errors import LunscopeError, UsageError
from engine.isolation.aggressor_group import find_hierarchy
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import NAME as ISOLATION
from engine.isolation.study import TITLE as ISOLATION_TITLE
from engine.job.spec import Arrival, JobSpec
from engine.rate_search.plan import RatePlan, make_rate_plan, open_depth, parse_rate_range
from engine.rate_search.runner import RateRunner
from engine.replacing import replace
from engine.study.order import Study, StudyOrder
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.order import preset_order
from engine.text import safe_text
from tui.load.load_controller import LoadController
from tui.options.job import with_scratch_targets
from tui.screens.load.confirm_write import when_typed
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.screens.shared.dialogs import Dialog
from tui.screens.sweep import asked_isolation
from tui.screens.sweep.preset_group import PresetOffer, measurable, preset_offers, preset_plan
from tui.sweep.series import SessionGroup
from tui.sweep.session import StudySession

EXAMPLE = "p99<=5ms p99.9<=20ms"
HELP = (
    "Rate at which I/Os may arrive so that each limit is kept, such as\n\n"
    f"    {EXAMPLE}\n\n"
    "mean, p50, p90, p99, p99.9 and max may be limited. "
    "rate=LOW..HIGH (I/Os per second) bounds the search, "
    "qd=N the I/Os outstanding per target [128]."
)


def asked_rates(text: str, job: JobSpec) -> RatePlan:
    """Plan a search of a line of limits, for the job of a load.

    Raises:
        UsageError: it is no such line, or the job cannot be an open loop.
    """
    rates, depth, limits = None, open_depth(job), list[Limit]()
    for word in text.split():
        word = word.strip(",")  # noqa: PLW2901 (a list may have commas)
        found = parse_rate_range(word)
        if found is not None:
            rates = found
        elif word.startswith("qd="):
            (depth,) = _depths(word)
        else:
            limits.append(Limit.parse(word))
    if not limits:
        raise UsageError(f"a search for a rate needs a limit, such as {EXAMPLE}")
    job = with_scratch_targets(measurable(job), 1)
    return make_rate_plan(replace(job, knobs=replace(job.knobs, queue_depth=depth)), limits, None, rates)


def _depths(word: str) -> tuple[int, ...]:
    axis = parse_axis(word)
    if len(axis.values) != 1:
        raise UsageError(f"{word}: one queue depth, such as qd=64")
    return tuple(axis.values)


_STOPS = "The load that runs is stopped first."


class SweepStarts(View):
    """Operations that begin a measurement."""

    _asked = EXAMPLE.split(maxsplit=1)[0]
    """Limits that were typed last."""
    _asked_isolation = asked_isolation.EXAMPLE
    """Settings of an isolation curve that were typed last."""

    @abstractmethod
    def report(self, text: str) -> None:
        """Show a refusal; an empty text clears the line."""

    @abstractmethod
    def began(self) -> None:
        """Show what was begun."""

    def begin_first(self, session: StudySession) -> None:
        """Begin what the command asked for, once the name of every target that is written was typed."""
        knobs = replace(session.study.plan.first, read_pct=session.study.plan.least_read_pct)
        when_typed(self.app, session.controller, knobs, self.app_state.sweeps.begin, session.refuse)

    def action_sweep_rate(self) -> None:
        """Ask for limits and search the highest rate within them."""
        controller = self._free_controller()
        if controller is None:
            return
        warning = _STOPS if controller.is_turned_live() else ""

        def typed(answer: str | None) -> None:
            if answer is None:
                return
            self._asked = answer
            try:
                plan = asked_rates(answer, controller.job)
            except LunscopeError as error:
                self.report(str(error))
                return
            measure = partial(self._measure, Study(plan, RateRunner), controller)
            when_typed(self.app, controller, plan.job.knobs, measure, lambda why: self.report(safe_text(why)))

        self.app.push_screen(Dialog("Highest rate within limits", HELP, warning=warning, value=self._asked), typed)

    def action_sweep_preset(self) -> None:
        """Choose a published study and measure it."""
        controller = self._free_controller()
        if controller is None:
            return
        job = replace(measurable(controller.job), arrival=Arrival.CLOSED)
        lines: list[ChooserLine[PresetOffer | str]] = [
            ChooserLine(_title(offer), offer, offer.preset.title) for offer in preset_offers(job)
        ]
        lines.append(ChooserLine(f"{ISOLATION:<11} {asked_isolation.NEEDS}", ISOLATION, ISOLATION_TITLE))

        def chosen(offer: PresetOffer | str | None) -> None:
            if isinstance(offer, PresetOffer):
                self._choose(controller, job, offer)
            elif offer is not None:
                self._ask_isolation(controller)

        self.app.push_screen(Chooser("Published studies: what each needs here", lines, verb="measure"), chosen)

    def _ask_isolation(self, controller: LoadController) -> None:
        """Ask for the rate of the victim and the loads and caps of the other one, and measure them."""

        def typed(answer: str | None) -> None:
            if answer is None:
                return
            self._asked_isolation = answer
            try:
                plan = asked_isolation.asked_isolation(answer, controller.job)
                hierarchy = find_hierarchy(controller.sysfs)
            except LunscopeError as error:
                self.report(str(error).removeprefix(f"--preset {ISOLATION}: "))
                return
            runner = partial(IsolationRunner, hierarchy=hierarchy, sysfs=controller.sysfs)
            self._measure(Study(plan, runner), controller)

        warning = _STOPS if controller.is_turned_live() else ""
        text, value = asked_isolation.HELP, self._asked_isolation
        self.app.push_screen(Dialog("Isolation curve", text, warning=warning, value=value), typed)

    def _choose(self, controller: LoadController, job: JobSpec, offer: PresetOffer) -> None:
        if offer.plan is None:
            self.report(f"{offer.preset.name}: {offer.needs}")
        elif offer.preset.is_toggled:

            def typed(command: str | None) -> None:
                if command and command.strip():
                    self._allow_writes(controller, job, offer, command.strip())
                elif command is not None:
                    self.report(f"{offer.preset.name}: needs the command that turns the cache on")

            text = f"{offer.preset.title}.\n\nShell command that turns the cache on, run between the halves:"
            self.app.push_screen(Dialog(f"Preset {offer.preset.name}", text), typed)
        else:
            self._allow_writes(controller, job, offer, "")

    def _allow_writes(self, controller: LoadController, job: JobSpec, offer: PresetOffer, command: str) -> None:
        """Ask for the names of targets that are written; without them what only reads is measured."""
        assert offer.plan is not None

        def begin() -> None:
            self._begin_preset(controller, job, offer, command)

        if offer.plan.least_read_pct < 100:
            knobs = replace(offer.plan.parts[0][1].job.knobs, read_pct=0.0)
            when_typed(self.app, controller, knobs, begin, lambda _why: begin())
        else:
            begin()

    def _begin_preset(self, controller: LoadController, job: JobSpec, offer: PresetOffer, command: str) -> None:
        try:
            plan = preset_plan(offer.preset, job, controller.permissions)
            order = preset_order(
                plan, controller.permissions, PresetFiles(plan.plans, None), (command,) if command else ()
            )
        except LunscopeError as error:
            self.report(str(error))
            return
        self._begin(order, controller, "; ".join(map(safe_text, plan.remarks)))

    def _measure(self, study: Study, controller: LoadController) -> None:
        self._begin(StudyOrder(study), controller)

    def _begin(self, order: StudyOrder, controller: LoadController, remarks: str = "") -> None:
        self.report(remarks)
        self.app_state.sweeps.add(SessionGroup.of(order, controller))
        self.app_state.sweeps.begin()
        self.began()

    def _free_controller(self) -> LoadController | None:
        """Return the controller of the load, unless something is measured."""
        if self.app_state.sweeps.is_busy:
            self.report(f"a measurement goes on: stop it first ({self.key_text('sweep.stop')})")
            return None
        return self.app_state.controller


def _title(offer: PresetOffer) -> str:
    """Say what it needs; why it cannot run is said in full when it is chosen."""
    needs = f"no: {offer.needs}" if offer.plan is None else offer.needs
    return f"{offer.preset.name:<11} {safe_text(needs)}"
