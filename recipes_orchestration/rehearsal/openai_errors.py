"""OpenAI's errors, in the shapes and words of its API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .side import token

__all__ = ["error", "error_object", "headers", "seconds", "unauthorized"]

_KINDS = {
    400: ("invalid_request_error", "invalid_value", "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "insufficient_permissions", "You have no access to this."),
    404: ("invalid_request_error", None, "Not found."),
    413: ("invalid_request_error", None, "The request is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    503: ("server_error", None, "The server is overloaded. Please try again later."),
}
_SERVER = ("server_error", None, "The server had an error while processing your request.")


def error_object(status: int, words: str = "", code: str = "", param: str = "") -> dict[str, Any]:
    """The JSON of an error, in the provider's words unless others are given."""
    kind, usual_code, usual = _KINDS.get(status, _SERVER)
    if code == "insufficient_quota":
        kind = code
    return {
        "error": {
            "message": words or usual,
            "type": kind,
            "param": param or None,
            "code": code or usual_code,
        }
    }


def error(status: int, words: str = "", code: str = "", param: str = "") -> Response:
    """An error as a response."""
    sent = headers()
    if status == 429:
        sent["retry-after"] = "0"
    return JSONResponse(error_object(status, words, code, param), status_code=status, headers=sent)


def headers() -> dict[str, str]:
    """The headers of every response."""
    return {"x-request-id": f"req_{token()}"}


def unauthorized(request: Request) -> Response | None:
    """The refusal of a request without a key, or with a bad one."""
    key = request.headers.get("authorization", "").removeprefix("Bearer").strip()
    if not key:
        return error(401, "You didn't provide an API key.", "missing_api_key")
    if "bad" in key:
        hidden = f"{key[:3]}{'*' * max(0, len(key) - 7)}{key[-4:]}"
        words = (
            f"Incorrect API key provided: {hidden}. You can find your API key at "
            "https://platform.openai.com/account/api-keys."
        )
        return error(401, words, "invalid_api_key")
    return None


def seconds(moment: datetime | None) -> int | None:
    """As the API gives times."""
    return None if moment is None else int(moment.timestamp())
