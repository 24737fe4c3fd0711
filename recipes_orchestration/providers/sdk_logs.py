"""Keeps the SDKs from logging what they send and are answered."""

from __future__ import annotations

import logging

__all__ = ["SDK_LOGGERS", "quiet_sdk_logs"]

SDK_LOGGERS = {
    # At DEBUG these print bodies, and some of them keys.
    **dict.fromkeys(("anthropic", "anthropic._base_client"), logging.INFO),
    **dict.fromkeys(("openai", "openai._base_client"), logging.INFO),
    **dict.fromkeys(("botocore", "boto3", "s3transfer", "urllib3"), logging.INFO),
    **dict.fromkeys(("httpx2", "httpcore2"), logging.INFO),
    # At INFO it prints the error that it tries again after, whatever its server wrote into it.
    "google_genai": logging.WARNING,
}
"""The least level of each logger."""


def quiet_sdk_logs() -> None:
    """Keeps the SDKs' loggers quiet, whatever the root logger or their variables say.

    To be called after an SDK is loaded, which may set its loggers by a variable such as
    ANTHROPIC_LOG.
    """
    for name, least in SDK_LOGGERS.items():
        logger = logging.getLogger(name)
        logger.setLevel(max(least, logger.getEffectiveLevel()))
