"""Each kind of alert brought about as it comes about in use, ended, and brought about again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from recipes_orchestration.engine.engine import Engine
from recipes_orchestration.engine.poll import poll_open
from recipes_orchestration.errors import PlaceError
from recipes_orchestration.ledger.tables import bookings, tasks
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import CloudArchive, advance_once, read_step, run_all
from .cloud_runner import direct
from .test_alert_trends import report
from .test_alerts import earlier

__all__ = ["CAUSES", "Scene"]


@dataclass
class Scene:
    """An archive with a step at Anthropic, and what is said of its project."""

    archive: CloudArchive
    rehearsal: Rehearsal
    more: Mapping[str, Any]
    reports: int = 0
    rounds: int = 0

    def direct(self, **script: Any) -> None:
        direct(self.rehearsal, "anthropic", **script)

    def write(self, **more: Any) -> None:
        settings = {"batch_from": 1, "settle_seconds": 0}
        self.archive.write_project(settings, {"tries": 1}, **{**self.more, **more})

    def ask_anew(self, **step: Any) -> None:
        """Another prompt: all pages are to be sent again."""
        self.rounds += 1
        (self.archive.folder / "prompts" / "read.md").write_text(f"Read it. {self.rounds}")
        self.archive.write_recipe([read_step("anthropic", **step)])


Act = Callable[[Scene, Engine], object]


@dataclass(frozen=True)
class Arranged:
    """`files` is done before the engine is opened for `begin`, `mend` before it is for `end`."""

    begin: Act
    end: Act
    files: Callable[[Scene], object] = field(default=lambda scene: scene.ask_anew())
    mend: Callable[[Scene], object] = field(default=lambda _: None)


def _hold(scene: Scene, engine: Engine) -> None:
    scene.direct(error_lines=1)
    run_all(engine)


def _pause(scene: Scene, engine: Engine) -> None:
    scene.direct(account_error="Your credit balance is too low to access the Anthropic API.")
    advance_once(engine)
    for _ in range(20):
        advance_once(engine)
        if engine.ledger.pauses.all():
            return
    raise AssertionError("the place was not paused")


def _reach_cap(_: Scene, engine: Engine) -> None:
    try:
        run_all(engine)
    except PlaceError:
        return
    raise AssertionError("the cap was not reached")


def _wait(scene: Scene, engine: Engine) -> None:
    scene.direct(never_ends=True)
    advance_once(engine)
    earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=13))


def _end_the_batch(scene: Scene, engine: Engine) -> None:
    scene.rehearsal.finish("anthropic")
    run_all(engine)


def _cost_more(scene: Scene, engine: Engine) -> None:
    scene.direct()
    advance_once(engine)
    database = engine.ledger._database  # pyright: ignore[reportPrivateUsage]
    with database.engine.begin() as connection:
        connection.execute(sa.update(tasks).values(estimate_usd=Decimal("0.000001")))
    run_all(engine)


def _a_day_later(_: Scene, engine: Engine) -> None:
    earlier(engine.ledger, bookings.c.booked_at, timedelta(days=2))


def _take(seconds: float, times: int) -> Act:
    def act(scene: Scene, engine: Engine) -> None:
        for _ in range(times):
            scene.reports += 1
            report(engine, scene.reports, seconds, "anthropic")

    return act


def _climb(scene: Scene, engine: Engine) -> None:
    _take(2.0, 17)(scene, engine)
    _take(4.0, 3)(scene, engine)


def _miss_deadline(scene: Scene, engine: Engine) -> None:
    _wait(scene, engine)
    earlier(engine.ledger, tasks.c.sent_at, timedelta(hours=14))
    poll_open(engine)


def _forget_holds(_: Scene, engine: Engine) -> None:
    engine.ledger.holds.clear("letters")


def _end_and_forget(scene: Scene, engine: Engine) -> None:
    run_all(engine)
    _forget_holds(scene, engine)


CAUSES: dict[str, Arranged] = {
    "hold": Arranged(_hold, _forget_holds),
    "paused": Arranged(_pause, lambda _, engine: engine.ledger.pauses.resume("anthropic")),
    "cap": Arranged(
        _reach_cap,
        lambda _, __: None,
        files=lambda scene: (scene.ask_anew(), scene.write(spend={"project": 0.0001})),
        mend=lambda scene: scene.write(spend={"project": 5}),
    ),
    "waiting": Arranged(_wait, _end_the_batch),
    "dearer": Arranged(_cost_more, _a_day_later),
    "slower": Arranged(_climb, _take(2.0, 20)),
    "deadline": Arranged(
        _miss_deadline, _end_and_forget, files=lambda scene: scene.ask_anew(deadline="26h")
    ),
}
"""How each kind begins and ends."""
