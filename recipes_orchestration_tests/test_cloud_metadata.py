"""What a materialization says of a step at a provider."""

from __future__ import annotations

from pathlib import Path

from dagster import FloatMetadataValue, IntMetadataValue

from recipes_orchestration.engine.look import look
from recipes_orchestration.orchestration.events import report_partition
from recipes_orchestration.rehearsal import Rehearsal, Script

from .cloud_archive import BATCH, MODELS, advance_once, make_cloud_archive, run_all


def test_a_materialization_says_what_its_results_cost(tmp_path: Path, rehearsal: Rehearsal) -> None:
    archive = make_cloud_archive(tmp_path)
    with archive.engine() as engine:
        report = report_partition(engine, run_all(engine), "read")
        (booking,) = engine.ledger.bookings.all()
    said = {name: value.value for name, value in report.metadata.items()}
    assert said["model"] == MODELS["anthropic"]
    assert said["cost_usd"] == float(booking.landed_usd)
    assert said["saved_usd"] == said["cost_usd"] != 0
    assert (said["tokens_in"], said["tokens_out"]) == (booking.tokens_in, booking.tokens_out)
    assert said["price"] == "batch"


def test_a_materialization_has_what_was_spent_as_numbers_that_the_ui_plots(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    rehearsal.script("anthropic", Script(truncation_share=0.5))
    archive = make_cloud_archive(tmp_path, pages=12, limits={"tries": 1})
    with archive.engine() as engine:
        report = report_partition(engine, run_all(engine), "read")
        (booking,) = engine.ledger.bookings.all()
    assert 0 < booking.wasted_usd < booking.landed_usd + booking.wasted_usd
    numbers = {
        "reserved_usd": 0.0,
        "booked_usd": float(booking.landed_usd + booking.wasted_usd),
        "wasted_usd": float(booking.wasted_usd),
        "saved_usd": float(booking.saved_usd or 0),
    }
    for name, number in numbers.items():
        value = report.metadata[name]
        # The UI plots metadata of these two kinds over the partitions.
        assert isinstance(value, FloatMetadataValue | IntMetadataValue)
        assert value.value == number


def test_what_is_reserved_for_the_rest_of_a_batch_is_told(
    tmp_path: Path, rehearsal: Rehearsal
) -> None:
    rehearsal.script("anthropic", Script(never_ends=True))
    archive = make_cloud_archive(tmp_path, spend={"project": 100})
    with archive.engine() as engine:
        advance_once(engine)
        (held,) = engine.ledger.reservations.all()
        view = look(engine, engine.project.recipe("letters"), BATCH)
        report = report_partition(engine, view, "read")
    assert report.metadata["reserved_usd"].value == float(held.usd) > 0
    assert report.metadata["booked_usd"].value == 0.0
