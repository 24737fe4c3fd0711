"""Bedrock's errors, in the shapes and words of its API."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .side import token

__all__ = ["BAD_TOKEN", "error", "time", "unauthorized"]

BAD_TOKEN = "The security token included in the request is invalid."  # noqa: S105  an error's words
_KINDS = {
    400: ("ValidationException", "The request is invalid."),
    403: ("AccessDeniedException", "You don't have access to the model with the given model ID."),
    404: ("ResourceNotFoundException", "The specified job was not found."),
    409: ("ConflictException", "The job has ended already."),
    413: ("ValidationException", "The request is too large."),
    424: ("ModelErrorException", "The model could not process the request."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", "The server had an internal error."),
    503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
}


def unauthorized(request: Request) -> Response | None:
    """The refusal of a request without credentials, or with bad ones."""
    given = request.headers.get("authorization", "")
    if not given:
        return error(403, "Missing Authentication Token", "MissingAuthenticationTokenException")
    key = given.partition("Credential=")[2].partition("/")[0] or given
    return error(403, BAD_TOKEN, "UnrecognizedClientException") if "bad" in key else None


def error(status: int, words: str = "", kind: str = "") -> Response:
    """An error as a response, in AWS's words unless others are given."""
    usual_kind, usual = _KINDS.get(status, _KINDS[500])
    headers = {"x-amzn-errortype": kind or usual_kind, "x-amzn-requestid": token()}
    return JSONResponse({"message": words or usual}, status_code=status, headers=headers)


def time(moment: datetime | None) -> str | None:
    """As the API gives times."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
