"""What Gemini's errors mean: whose fault, and when the same request may be taken. Pure.

Codes are those of https://ai.google.dev/gemini-api/docs/troubleshooting and of google.rpc.Code
(November 2026). A line of a batch may carry either: 429 and 8 both are RESOURCE_EXHAUSTED.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .json_values import as_dict, as_list, as_text, tidy

__all__ = ["error_words", "is_account", "is_spent", "retry_seconds"]

# UNAUTHENTICATED, PERMISSION_DENIED and RESOURCE_EXHAUSTED, by HTTP and by RPC.
ACCOUNT_CODES = frozenset({401, 402, 403, 429, 16, 7, 8})
# INVALID_ARGUMENT, FAILED_PRECONDITION and NOT_FOUND blame the page, or by their words the key,
# the billing, the country or the model.
MAYBE_ACCOUNT = frozenset({400, 404, 3, 5, 9})
ACCOUNT_WORDS = re.compile(
    r"api[ _]key|billing|credit|quota|user location|models?/\S+ is not (?:found|supported)"
    r"|model .*(?:not found|not supported|does not exist|not available)",
    re.IGNORECASE,
)
SPENT = re.compile(r"per ?day|credit|billing|spend", re.IGNORECASE)
SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
KEY = re.compile(r"\bAIza[\w-]{8,}|\bAQ\.[\w-]{8,}")


def error_words(error: Mapping[str, Any]) -> str:
    """The words of an error object, such as `429 RESOURCE_EXHAUSTED: message`."""
    head = [str(error["code"])] if type(error.get("code")) is int else []
    head += [tidy(error.get("status"))] if error.get("status") else []
    message = KEY.sub("[key]", tidy(error.get("message")))
    return ": ".join(filter(None, [" ".join(head), message])) or "an error without words"


def is_account(error: Mapping[str, Any]) -> bool:
    """Whether the account is the reason: key, credit, model, country, or one of its limits."""
    code = error.get("code")
    if code in ACCOUNT_CODES:
        return True
    return code in MAYBE_ACCOUNT and bool(ACCOUNT_WORDS.search(as_text(error.get("message"))))


def is_spent(error: Mapping[str, Any]) -> bool:
    """Whether waiting a minute is no help: a day's quota or the credit is used up.

    Google answers 429 for a minute's rate and a day's quota alike; `QuotaFailure` tells them.
    """
    for detail in map(as_dict, as_list(error.get("details"))):
        for violation in map(as_dict, as_list(detail.get("violations"))):
            if SPENT.search(as_text(violation.get("quotaId"))):
                return True
    message = as_text(error.get("message"))
    return "check your plan and billing" not in message and bool(SPENT.search(message))


def retry_seconds(error: Mapping[str, Any]) -> float | None:
    """In how many seconds the same request may be taken, as `RetryInfo` says."""
    for detail in map(as_dict, as_list(error.get("details"))):
        match = SECONDS.fullmatch(as_text(detail.get("retryDelay")))
        if match is not None:
            return float(match[1])
    return None
