"""Gemini's errors, in the shapes and words of Google's API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

__all__ = ["error", "not_found", "time", "unauthorized"]

_STATUS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The request timed out. Please try again."),
}


def error(status: int, words: str = "", *, reason: str = "", kind: str = "") -> Response:
    """An error as a response, in Google's words unless others are given."""
    usual_kind, usual = _STATUS.get(status, _STATUS[500])
    body: dict[str, Any] = {
        "code": status,
        "message": words or usual,
        "status": kind or usual_kind,
    }
    if reason:
        body["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            }
        ]
    return JSONResponse({"error": body}, status_code=status)


def not_found(model: str, method: str) -> Response:
    """The error for a model that does not exist."""
    return error(
        404,
        f"models/{model} is not found for API version v1beta, or is not supported for {method}. "
        "Call ListModels to see the list of available models and their supported methods.",
    )


def unauthorized(request: Request) -> Response | None:
    """The refusal of a request without a key, or with a bad one."""
    key = request.headers.get("x-goog-api-key") or request.query_params.get("key", "")
    if not key:
        return error(
            403,
            "Method doesn't allow unregistered callers (callers without established identity). "
            "Please use API Key or other form of API consumer identity to call this API.",
        )
    if "bad" in key:
        words = "API key not valid. Please pass a valid API key."
        return error(400, words, reason="API_KEY_INVALID")
    return None


def time(moment: datetime | None) -> str | None:
    """As the API gives times."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
