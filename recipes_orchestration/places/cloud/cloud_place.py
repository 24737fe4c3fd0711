"""A provider as a place: batches at half price, or plain calls where a person waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...collecting import OFTEN, RARELY, collecting_after
from ...providers.prices import ModelPrices
from ...providers.provider import BatchLimits, BatchState, BatchStatus, Group, Provider
from ...providers.recording import Recorder
from ...runner.work import TaskSpec, Usual
from ..decoders import Decoders
from ..place import Bill, Chunk, Package, Report, Sent, Sought, Standing, State
from .answer_chunks import all_outcomes, chunks
from .answering import Reading
from .live_answers import LiveAnswers
from .live_calls import LiveCalls
from .own_prices import priced, prices_of
from .packing import Packer
from .plain_tasks import PlainTasks, is_plain
from .questions import Asker
from .spool import Spool, SpoolPart
from .task_estimates import TaskEstimate
from .worst_cases import WorstCases

__all__ = ["CloudPlace", "CloudRules"]

# The shortest of the four: Anthropic keeps results for 29 days (its page on batch processing,
# November 2026).
KEPT_DAYS = 29


@dataclass(frozen=True)
class CloudRules:
    """What the project says of the place; see `CloudSettings`.

    `capped`: what a package can cost at most is to be told.
    """

    batch_from: int = 100
    max_open: int = 10
    parallel: int = 8
    timeout_hours: float = 24.0
    settle_seconds: float = 60.0
    max_requests: int | None = None
    max_bytes: int | None = None
    land_every_pages: int = 25
    land_every_seconds: float = 30.0
    capped: bool = False


class CloudPlace:
    """Steps on a provider's models.

    A batch lives at the provider and is known by the provider's id. A task of plain calls lives in
    the process that sent it; its id begins with `plain/` and names that process, and its answers
    are in a journal on this machine until they have landed. `folder` is for both: requests that
    wait to be sent, and journals.
    """

    def __init__(
        self,
        provider: Provider,
        rules: CloudRules,
        folder: Path,
        new_recorder: Callable[[], Recorder],
        prices: Mapping[str, ModelPrices],
    ) -> None:
        self.name = provider.name
        self.max_open: int | None = rules.max_open
        self.settle_seconds = rules.settle_seconds
        self.overdue_seconds: float | None = (rules.timeout_hours + 2) * 3600
        self.keeps_seconds: float | None = KEPT_DAYS * 86_400.0
        self._provider = provider
        self._folder = folder
        self._rules = rules
        self._new_recorder = new_recorder
        self._prices = prices
        self._spool = Spool(folder / "spool")
        self._decoders = Decoders()
        self._plain = PlainTasks(
            provider,
            folder / "answers",
            parallel=rules.parallel,
            land_every_pages=rules.land_every_pages,
            land_every_seconds=rules.land_every_seconds,
        )
        self._bills: dict[str, Bill] = {}
        self._told: dict[str, BatchStatus] = {}
        self._recorders: dict[str, Recorder] = {}
        self._live: dict[str, LiveAnswers] = {}

    def takes_slot(self, pages: int, *, now: bool) -> bool:
        """Whether so many pages go as a batch."""
        return not now and pages >= max(self._rules.batch_from, self._provider.limits.min_requests)

    def pack(self, spec: TaskSpec, *, now: bool = False) -> Iterator[Sequence[Package]]:
        """The pages' requests, in files, cut by the provider's caps and the project's."""
        (step,) = spec.steps
        packer = Packer(
            step=step.name,
            mode="batch" if self.takes_slot(len(spec.pages), now=now) else "plain",
            limits=self._limits(),
            line=self._provider.line,
            new_part=self._spool.part,
            worst=self._worst if self._rules.capped else None,
            estimate=partial(self._estimate, spec.usual),
        )
        recorder = partial(self._recorder, step.name)
        asker = Asker.of(spec, step, self._provider, recorder, self._decoders)
        with collecting_after(RARELY if asker.recorder is None else OFTEN):
            for package in packer.packages(asker.calls()):
                yield [replace(package, group=priced(package.group, self._prices))]

    def discard(self, package: Package) -> None:
        """Deletes the package's file, unless plain calls are being made from it."""
        part: SpoolPart | None = package.content
        if part is not None and not self._plain.uses(part):
            part.remove()

    def submit(self, names: Sequence[str], packages: Sequence[Package]) -> Sequence[str]:
        """Creates the batch, or begins the plain calls: a group has one package."""
        ((name, package),) = zip(names, packages, strict=True)
        return [self._submit(name, package)]

    def _submit(self, name: str, package: Package) -> str:
        part: SpoolPart = package.content
        if package.slot:
            return self._provider.submit(name, part.group, part.path, part.bodies.keys())
        return self._plain.start(name, part)

    def find(self, sought: Sought) -> str | None:
        """The task of that name: here, in a journal of this machine, or at the provider."""
        if (plain := self._plain.find(sought.name)) is not None:
            return plain
        if not sought.slot or not sought.ids or sought.since is None:
            return None  # plain calls are nowhere but here
        return self._provider.find(sought.name, sought.ids, sought.since, sought.known)

    def statuses(self, remote_ids: Collection[str]) -> Mapping[str, Standing]:
        """One call to the provider for all batches; plain tasks are known here."""
        batches = [each for each in remote_ids if not is_plain(each)]
        told = self._provider.statuses(batches) if batches else {}
        self._told.update(told)
        return {
            each: self._plain.standing(each) if is_plain(each) else _standing(told[each])
            for each in remote_ids
        }

    def results(self, sent: Sent) -> Iterator[Chunk]:
        """A batch's outcomes once it has ended; a plain task's as they come."""
        if is_plain(sent.remote_id):
            yield from self._plain.results(sent, self._reading)
            return
        status = self._told.get(sent.remote_id)
        if status is None:
            self.statuses([sent.remote_id])
            status = self._told[sent.remote_id]
        if not sent.answers.kept():
            sent.answers.keep(self._provider.results(sent.remote_id))
        reading = self._reading(sent)
        reading.settle_kept()
        reading.ended_words = status.words
        reading.expired = status.expired
        reading.failed = status.state is BatchState.FAILED
        yield from chunks(all_outcomes(reading, sent))
        self._bills[sent.remote_id] = reading.bill()

    def bill(self, remote_id: str) -> Bill | None:
        """What the task cost, of all that was read of it."""
        if is_plain(remote_id):
            return self._plain.bill(remote_id)
        return self._bills.get(remote_id)

    def report(self, remote_id: str) -> Report | None:
        """What plain calls took; of a batch a provider tells no more than its bill."""
        return self._plain.report(remote_id)

    def cancel(self, remote_id: str) -> None:
        """Asks the provider to end the batch; plain calls that have not begun are left."""
        if is_plain(remote_id):
            self._plain.cancel(remote_id)
        else:
            self._provider.cancel(remote_id)

    def forget(self, remote_id: str) -> None:
        """Lets go of the task: its answers are in the library."""
        self._plain.forget(remote_id)
        self._bills.pop(remote_id, None)
        self._told.pop(remote_id, None)
        if (recorder := self._recorders.pop(remote_id, None)) is not None:
            recorder.close()
        if (live := self._live.pop(remote_id, None)) is not None:
            live.remove()

    def ends_here(self, remote_id: str | None) -> bool:
        """Plain calls end with their process, a batch does not."""
        return remote_id is not None and is_plain(remote_id)

    def wait(self, seconds: float) -> None:
        """Returns when plain calls have answered, at the latest after `seconds`."""
        self._plain.wait(seconds)

    def close(self) -> None:
        """Ends the plain calls that have not begun, the connections and the decoders."""
        self._plain.close()
        self._decoders.close()
        for recorder in self._recorders.values():
            recorder.close()
        self._recorders.clear()
        self._provider.close()
        self._spool.close()

    def _worst(self, group: Group) -> WorstCases:
        return WorstCases(self.name, group, self._prices)

    def _estimate(self, usual: Usual, group: Group) -> TaskEstimate:
        return TaskEstimate(self.name, group, self._prices, usual)

    def _limits(self) -> BatchLimits:
        limits = self._provider.limits
        return BatchLimits(
            max_requests=min(limits.max_requests, self._rules.max_requests or limits.max_requests),
            max_bytes=min(limits.max_bytes, self._rules.max_bytes or limits.max_bytes),
            min_requests=limits.min_requests,
            overhead=limits.overhead,
        )

    def _recorder(self, user: str) -> Recorder:
        """One for each step that is sent and each task that lands: its cap on live calls is new."""
        if user not in self._recorders:
            self._recorders[user] = self._new_recorder()
        return self._recorders[user]

    def _reading(self, sent: Sent) -> Reading:
        (step,) = sent.spec.steps
        recorder = partial(self._recorder, sent.remote_id)
        asker = Asker.of(sent.spec, step, self._provider, recorder, self._decoders)
        live = LiveAnswers(self._folder / "answers" / f"{sent.name}.live.jsonl")
        self._live[sent.remote_id] = live
        calls = LiveCalls(self._provider, self._prices, live, sent.budget)
        return Reading(asker, sent, prices_of(sent.group, self._prices), calls)


def _standing(status: BatchStatus) -> Standing:
    match status.state:
        case BatchState.RUNNING:
            return Standing(State.RUNNING, status.words)
        case BatchState.FORGOTTEN:
            return Standing(State.LOST, status.words or "the provider does not know it any more")
        case BatchState.FAILED if status.account:
            return Standing(
                State.FAILED, status.words, account=True, retry_after=status.retry_after
            )
        case _:
            return Standing(State.ENDED, status.words)
