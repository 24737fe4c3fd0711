"""The one tree of errors. Every message names the thing, says what happened and what to do next."""

from __future__ import annotations

from decimal import Decimal

__all__ = [
    "ConfigError",
    "DagsterError",
    "HeldBack",
    "InDoubt",
    "LedgerError",
    "LibraryError",
    "MissingExtra",
    "NoConsent",
    "NotBatchable",
    "NotFound",
    "OverCap",
    "PageUnreadable",
    "PlaceError",
    "ProviderError",
    "RecipesError",
    "Refused",
    "SourceError",
    "StepError",
    "Unreachable",
]


class RecipesError(Exception):
    """Base of every error that is raised on purpose; the command line prints it as one line."""


class ConfigError(RecipesError):
    """`project.yaml` or a recipe file says something that cannot be carried out."""


class NotFound(RecipesError):
    """A recipe, step, folder, batch or page was asked for that does not exist."""


class SourceError(RecipesError):
    """A source could not be listed or a file of it could not be fetched."""


class LedgerError(RecipesError):
    """The ledger could not be opened, migrated or written."""


class LibraryError(RecipesError):
    """The library could not be read or written."""


class PlaceError(RecipesError):
    """A place could not take, report or end a task."""


class NoConsent(PlaceError):
    """Pages may not leave for a place: a yes is missing, and nothing was packaged or sent."""


class OverCap(PlaceError):
    """What was to be sent would pass a cap, by `over` dollars; it may cost `usd`.

    `for_good`: it would also if all that is open elsewhere cost nothing.
    """

    def __init__(self, words: str, *, usd: Decimal, over: Decimal, for_good: bool) -> None:
        super().__init__(words)
        self.usd = usd
        self.over = over
        self.for_good = for_good


class ProviderError(PlaceError):
    """A provider did not answer, or not as it should: what it did with the request is unknown."""


class Refused(ProviderError):
    """A provider said no for certain: nothing was accepted and nothing will be billed.

    `account`: the reason lies with the account (key, credit, model, limits), not with the request.
    `retry_after` is in how many seconds the same request may be taken, None when that is not known.
    """

    def __init__(
        self, words: str, *, account: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(words)
        self.account = account
        self.retry_after = retry_after


class Unreachable(ProviderError):
    """A place could not be asked at all: nothing was sent there and nothing is known of its tasks.

    `connect`: a person must open the connection; until then the place is paused with the words.
    """

    def __init__(self, words: str, *, connect: bool = False) -> None:
        super().__init__(words)
        self.connect = connect


class InDoubt(ProviderError):
    """A batch at the provider may be one of ours and only time will tell: nothing is sent again."""


class NoDecoder(PlaceError):
    """The processes that decode pages could not be started: no page is to blame."""


class TakenOver(PlaceError):
    """Another process has taken over what this one was about to send: it sends nothing."""


class HeldBack(RecipesError):
    """A person stopped or paused it: nothing is sent, and it goes on when a person resumes it."""


class StepError(RecipesError):
    """A step could not be loaded or gave something that is not a result."""


class MissingExtra(StepError):
    """A step needs packages that are not installed; the message names the extra."""


class NotBatchable(StepError):
    """A step's code asks a model in a way that no batch can carry."""


class DagsterError(RecipesError):
    """A Dagster instance or web server could not be reached, or did not do what was asked."""


class PageUnreadable(RecipesError):
    """The bytes of a page are not a page: trying again helps only when the file changes."""


class DecoderEnded(RecipesError):
    """The process that decoded a page ended, or was ended as it took too long: `timed_out`."""

    def __init__(self, words: str, *, timed_out: bool) -> None:
        super().__init__(words)
        self.timed_out = timed_out
