"""The hub's errors by status and headers, as huggingface_hub 2.4 reads them (`utils/_http.py`)."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

__all__ = ["error", "no_bucket", "no_entry", "no_job", "no_repo", "no_revision"]

_WORDS = {
    400: "Invalid request",
    401: "Invalid credentials in Authorization header",
    402: "Pre-paid credit balance is insufficient - add more credits to your account to use Jobs.",
    403: "You don't have the required permissions for this namespace",
    404: "Not found",
    412: "A commit has happened since. Please refresh and try again.",
    413: "The request is too large",
    429: "We had to rate limit your IP",
}


def error(status: int, words: str = "", code: str = "", **headers: str) -> Response:
    """An error with its words in the body and in `X-Error-Message`, its code in `X-Error-Code`."""
    words = words or _WORDS.get(status, "Internal Error - We're working hard to fix this")
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    # A header is one line of latin-1.
    sent["X-Error-Message"] = (
        words.replace("\n", " ").encode("latin-1", "replace").decode("latin-1")
    )
    if code:
        sent["X-Error-Code"] = code
    return JSONResponse({"error": words}, status_code=status, headers=sent)


def no_repo() -> Response:
    """There is no such repository, or the token may not see it."""
    return error(404, "Repository not found", "RepoNotFound")


def no_revision(revision: str) -> Response:
    """The repository has no such branch or commit."""
    return error(404, f"Invalid rev id: {revision}", "RevisionNotFound")


def no_entry(commit: str, words: str = "Entry not found") -> Response:
    """The commit has no such file or folder."""
    return error(404, words, "EntryNotFound", X_Repo_Commit=commit)


def no_bucket() -> Response:
    """There are no buckets here: their files travel over xet alone."""
    return error(404, "Bucket not found", "RepoNotFound")


def no_job() -> Response:
    """There is no such job."""
    return error(404, "Job not found")
