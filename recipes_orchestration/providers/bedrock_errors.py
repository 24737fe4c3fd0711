"""What the errors of Bedrock and S3 mean: whose fault they are. Pure.

Codes are those of botocore 1.43's models, of
https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html and of
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .json_values import as_text, tidy

__all__ = ["clean", "code_of_account", "error_words", "is_account", "words_of_account"]

ACCOUNT_CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AuthFailure", "Forbidden"}
    | {"ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId"}
    | {"InvalidClientTokenId", "InvalidSignatureException", "InvalidToken", "NotSignedUp"}
    | {"MissingAuthenticationToken", "NoSuchBucket", "OptInRequired", "RequestTimeTooSkewed"}
    | {"SignatureDoesNotMatch", "ServiceQuotaExceededException", "SubscriptionRequiredException"}
    | {"UnrecognizedClientException", "ResourceNotFoundException", "PermanentRedirect"}
)
ACCOUNT_WORDS = re.compile(
    r"access ?denied|not authorized|don't have access|security token|quota|too many tokens per day"
    r"|credit|billing|payment|marketplace subscription|model identifier is invalid|end of its life"
    r"|on-demand throughput|inference profile"
    r"|\b(?:model|role|bucket)\b.* (?:not found|does not exist|not available|not supported in)"
    r"|could not (?:resolve|validate) the (?:foundation )?model|cannot be assumed|assume role"
    r"|minimum (?:number )?of records|number of records|(?:less|fewer) records",
    re.IGNORECASE,
)
# Access key ids, and what a complaint about a signature repeats of the request.
SECRET = re.compile(
    r"\b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{8,}|(?<=x-amz-security-token:)\S+|(?<=Signature=)\w+"
)


def code_of_account(code: str) -> bool:
    """Whether an error code blames the account: credentials, rights, model, bucket or a quota."""
    return code in ACCOUNT_CODES


def words_of_account(words: str) -> bool:
    """Whether a message blames the account; ValidationException is used for that too."""
    return bool(ACCOUNT_WORDS.search(words))


def is_account(error: Mapping[str, Any]) -> bool:
    """Whether a record's `error` blames the account."""
    return error.get("errorCode") in (401, 402, 403) or words_of_account(
        as_text(error.get("errorMessage"))
    )


def error_words(error: Mapping[str, Any]) -> str:
    """The words of a record's `error`, such as `400: message`."""
    code = error.get("errorCode")
    head = str(code) if type(code) is int else tidy(code)
    return ": ".join(filter(None, [head, clean(error.get("errorMessage"))])) or (
        "an error without words"
    )


def clean(words: Any) -> str:
    """A provider's words for a person, without keys or signatures."""
    return SECRET.sub("[key]", tidy(words))
