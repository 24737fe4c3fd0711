"""How a page goes to a far side: its own file, a page of its PDF, or a picture made of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import StepError
from ...recipe import Step, canonical_json, digest
from ...runner.work import PageWork, TaskSpec
from ...steps.registry import load_operation

__all__ = ["Way", "picture_way", "reads_pdf", "way_of"]


@dataclass(frozen=True)
class Way:
    """How a page becomes a file. `made_of` names what the file is made of.

    `decoded`: a picture is made of it, within the settings of `image` where all of its `steps`
    have the same. `encoded`: the steps see that picture as it is.
    """

    made_of: str
    steps: tuple[Step, ...]
    decoded: bool = False
    image: Mapping[str, Any] | None = None
    encoded: bool = False


def way_of(spec: TaskSpec, work: PageWork, on_pdf: Collection[str]) -> Way:
    """How the page goes; `on_pdf` are the names of the steps that want the PDF itself."""
    steps = tuple(step for step in spec.steps if step.name in work.steps)
    if work.frame is not None and any(name in on_pdf for name in work.steps):
        return Way(f"{work.sha256}:file", steps)
    if work.frame is None and _shared_image(steps) is None:
        return Way(work.sha256, steps)
    return picture_way(spec, work, steps)


def picture_way(spec: TaskSpec, work: PageWork, steps: tuple[Step, ...]) -> Way:
    """The way of a page that goes as a picture."""
    image = _shared_image(steps)
    kind = "png" if image is None else digest(canonical_json(dict(image)))
    # A PDF's page is drawn smaller where a bound says so: other bounds may make other pictures.
    made_of = f"{work.sha256}:{kind}:{spec.max_pixels}"
    encoded = image is not None or all(step.image is None for step in steps)
    return Way(made_of, steps, decoded=True, image=image, encoded=encoded)


def reads_pdf(step: Step) -> bool:
    """Whether the step wants the PDF itself, not a picture of its page."""
    try:
        return "pdf" in load_operation(step.run).kinds
    except StepError:  # what is not installed here may be on the far side
        return False


def _shared_image(steps: Sequence[Step]) -> Mapping[str, Any] | None:
    """The settings of the picture where all steps have the same."""
    images = [step.image for step in steps]
    first = images[0] if images else None
    return first if all(image == first for image in images) else None
