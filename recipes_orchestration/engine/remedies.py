"""What a person can do about pages and tasks that wait for one."""

from __future__ import annotations

from ..runner.work import FailureKind

__all__ = ["page_remedy", "task_remedy"]

_RETRY = "try again with: recipes retry {recipe}"
_RELEASE = "leave a page out, or give its value, with: recipes release PAGE"
_FIRST: dict[str, str] = {
    FailureKind.UNREADABLE: "mend or replace the file, then: recipes discover {source}",
    FailureKind.SOURCE: "see that the source can be reached: the next run tries again",
    FailureKind.ANSWER: "change the step's prompt, model or max_tokens; {retry}",
    FailureKind.ERRORED: "see what the provider says of the request; {retry}",
    FailureKind.TIMEOUT: "give a page more time (limits: page_timeout); {retry}",
    FailureKind.EXPIRED: "give the place more time, or smaller batches; {retry}",
    FailureKind.MEMORY: "give the step more memory at its place; {retry}",
    FailureKind.DIED: "look at the page, or give the step more memory; {retry}",
    FailureKind.DEADLINE: "give them the whole time again with: recipes retry {recipe}",
}


def page_remedy(reason: str, recipe: str, source: str) -> str:
    """What to do about pages of a recipe that are held for the reason, a `FailureKind`."""
    words = _FIRST.get(reason, "{retry}").replace("{retry}", _RETRY)
    return f"{words.format(recipe=recipe, source=source)}; {_RELEASE}"


def task_remedy(recipe: str) -> str:
    """What to do about a task that is held: its words say what happened."""
    return (
        f"mend what it says, then have its place asked again: recipes retry {recipe}; or end it: "
        f"recipes stop {recipe}"
    )
