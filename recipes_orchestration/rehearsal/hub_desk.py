"""Who is let in at the rehearsed hub, what it was told to do, and what was asked of it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .bodies import TooLarge, receive
from .hub_errors import error
from .hub_script import HubScript
from .side import dropped

__all__ = ["HUB_ORGANIZATION", "HUB_TOKEN", "HUB_USER", "MAX_BODY_BYTES", "Desk"]

HUB_TOKEN = "hf_rehearsal"  # noqa: S105  what a rehearsal takes is no secret
MAX_BODY_BYTES = 16 * 2**20
HUB_USER = "rehearsal"
HUB_ORGANIZATION = "rehearsal-org"
_SEQUENCES = ("create_status", "status_status", "commit_status", "download_status")
_TIMES = ("lose_reply", "lose_commit_reply")
_PATTERNS = ("lose_files", "cut_files")


class Desk:
    """What all endpoints of the hub have in common."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.lock = threading.RLock()
        self.forget_script()

    def forget_script(self) -> None:
        """Forgets what it was told, and what was asked of it."""
        self.script = HubScript()
        self.calls: Counter[str] = Counter()
        self._next: list[tuple[HubScript, int]] = []
        self._left: dict[str, list[int]] = {}
        self._times: Counter[str] = Counter()
        self._patterns: dict[str, list[str]] = {}

    def set_script(self, script: HubScript) -> None:
        """From now on; for the next jobs alone when the script says so."""
        with self.lock:
            if script.jobs is None:
                self.script, self._next = script, []
            else:
                self._next.append((script, script.jobs))
            for key in _SEQUENCES:
                self._left[key] = list(getattr(script, key))
            for key in _TIMES:
                self._times[key] = getattr(script, key)
            for key in _PATTERNS:
                self._patterns[key] = list(getattr(script, key))

    def coming_script(self) -> HubScript:
        """What the next job will be made with."""
        return self._next[0][0] if self._next else self.script

    def use_script(self) -> HubScript:
        """What this job is made with; it is one of the next jobs of a script for some."""
        script = self.coming_script()
        if self._next:
            left = self._next[0][1] - 1
            self._next = [*([(script, left)] if left else []), *self._next[1:]]
        return script

    def refused(self, sequence: str) -> Response | None:
        """The error that the script has for this request."""
        left = self._left.get(sequence)
        status = left.pop(0) if left else 200
        if status == 200:
            return None
        self.calls["refused"] += 1
        return error(status)

    def uses_up(self, times: str) -> bool:
        """Whether this is one of the N times that the script speaks of."""
        used = self._times[times] > 0
        self._times[times] -= used
        return used

    def replied(self, request: Request, response: Response, times: str) -> Response:
        """The answer to what was accepted: lost or as it is."""
        return dropped(request) if self.uses_up(times) else response

    def patterns(self, key: str) -> list[str]:
        """The patterns of files that are left; whoever meets one takes it out."""
        return self._patterns.setdefault(key, [])

    def unauthorized(self, request: Request, *, public: bool = False) -> Response | None:
        """The refusal of a request without a token, or with a wrong one.

        What is `public` may be read without a token, but not with a wrong one.
        """
        given = request.headers.get("authorization")
        if given is None:
            return None if public else error(401, "Invalid username or password.")
        return None if self.knows(given.removeprefix("Bearer").strip()) else error(401)

    def knows(self, token: str) -> bool:
        """Whether a token is good."""
        return token == HUB_TOKEN

    def forbidden(self, namespace: str) -> Response | None:
        """The refusal to do anything in a namespace of others."""
        return None if namespace in (HUB_USER, HUB_ORGANIZATION) else error(403)

    async def whoami(self, request: Request) -> Response:
        """GET /api/whoami-v2."""
        if refused := self.unauthorized(request):
            return refused
        organization = {"type": "org", "id": "0" * 23 + "2", "name": HUB_ORGANIZATION}
        return JSONResponse(
            {
                "type": "user",
                "id": "0" * 23 + "1",
                "name": HUB_USER,
                "fullname": HUB_USER,
                "isPro": False,
                "orgs": [organization],
                "auth": {"type": "access_token", "accessToken": {"role": "write"}},
            }
        )

    async def json(self, request: Request) -> dict[str, Any] | Response:
        """The object in a request's body, or the refusal of what is none."""
        try:
            given = from_json((await receive(request, MAX_BODY_BYTES)).bytes())
        except TooLarge:
            return error(413)
        except ValueError:
            return error(400, "Invalid JSON")
        return given if isinstance(given, dict) else error(400, "Invalid JSON")

    def next_page(
        self, path: str, query: list[tuple[str, str]], start: int | str
    ) -> dict[str, str]:
        """The header that leads to the next page of a list."""
        kept = [(key, value) for key, value in query if key != "cursor"]
        url = f"{self.endpoint}{path}?{urlencode([*kept, ('cursor', str(start))])}"
        return {"Link": f'<{url}>; rel="next"'}
