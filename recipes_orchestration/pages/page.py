"""A page as a step sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar

from PIL import Image

from .decode import decode

__all__ = ["Apart", "Page"]

_T = TypeVar("_T")


class Apart(Protocol):
    """Decodes a page in another process, and gives what a function of a module makes of it."""

    def __call__(self, page: Page, make: Callable[..., _T], *args: Any) -> _T:
        """What `make(picture, *args)` gives there. Raises `DecoderEnded` when that ended."""
        ...


@dataclass(frozen=True, init=False)
class Page:
    """One page: an image, one page of a PDF or a multi-page TIFF.

    `page_id` is the path relative to the source, plus `#0003` for the third page inside a file.
    `sha256` is the hash of its bytes. `frame` counts from 0 within a multi-page file and is None
    for a file that is one page. `fetch` gives the file's bytes. `apart` decodes it where a page
    that ends its decoder must not end this process; None is here.
    """

    page_id: str
    sha256: str
    file: str
    frame: int | None
    fetch: Callable[[], bytes] = field(repr=False, compare=False)
    max_pixels: int = 150_000_000
    apart: Apart | None = field(default=None, repr=False, compare=False)

    def __init__(
        self,
        page_id: str,
        sha256: str,
        file: str,
        frame: int | None,
        fetch: Callable[[], bytes],
        max_pixels: int = 150_000_000,
        apart: Apart | None = None,
    ) -> None:
        # As they lie: set one after another, frozen fields take four times as long, for each page.
        fields = vars(self)
        fields["page_id"] = page_id
        fields["sha256"] = sha256
        fields["file"] = file
        fields["frame"] = frame
        fields["fetch"] = fetch
        fields["max_pixels"] = max_pixels
        fields["apart"] = apart

    @property
    def folder(self) -> str:
        """The folder below the source that holds the file; `.` for the source itself."""
        return str(PurePosixPath(self.file).parent)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the page's file. Raises `SourceError` when it cannot be fetched."""
        return self.fetch()

    @cached_property
    def image(self) -> Image.Image:
        """The page as an upright 8-bit RGB or grey picture.

        Raises `PageUnreadable`, with a reason for a person, when the bytes are not a page.
        """
        if self.apart is None:
            return decode(self.data, frame=self.frame or 0, max_pixels=self.max_pixels)
        return Image.frombytes(*self.apart(self, _pixels))

    def pictured(self, make: Callable[..., _T], *args: Any) -> _T:
        """What `make(picture, *args)` gives, where the page is decoded: the picture is large."""
        if self.apart is None:
            return make(self.image, *args)
        return self.apart(self, make, *args)


def _pixels(image: Image.Image) -> tuple[str, tuple[int, int], bytes]:
    return image.mode, image.size, image.tobytes()
