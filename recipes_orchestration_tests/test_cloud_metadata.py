"""What a materialization says of a step at a provider."""

from __future__ import annotations

from pathlib import Path

from recipes_orchestration.orchestration.events import report_partition
from recipes_orchestration.rehearsal import Rehearsal

from .cloud_archive import MODELS, make_cloud_archive, run_all


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
