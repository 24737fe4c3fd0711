"""A provider's place, opened from what the project says of it."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ConfigError
from ..place_settings import BedrockSettings, CloudSettings
from ..places.cloud.cloud_place import CloudPlace, CloudRules
from ..project import Project
from ..providers.provider import Provider
from ..providers.recording import Recorder
from ..providers.registry import open_provider
from .consent import live_calls_may_go

__all__ = ["open_asking", "open_cloud_place"]


def open_asking(project: Project, name: str, *, python: bool) -> tuple[Provider, Recorder | None]:
    """What makes the calls of the provider's steps, without its key: nothing can be sent by it.

    A recorder is made for `python` steps only, as it loads the provider's SDK.
    """
    settings = project.places[name]
    assert isinstance(settings, CloudSettings)
    recorder: Recorder | None = None
    if python:
        region = settings.region if isinstance(settings, BedrockSettings) else None
        recorder = Recorder(name, base_url=settings.base_url, region=region, live_calls=0)
    return open_provider(name, **_provider_settings(settings, None)), recorder


def open_cloud_place(project: Project, name: str) -> CloudPlace:
    """The provider of that name as a place. Opens no connection.

    Raises `ConfigError` when the variable that is said to hold its key is not set.
    """
    settings = project.places[name]
    assert isinstance(settings, CloudSettings)
    key = _key(settings, name)
    limits = project.limits
    rules = CloudRules(
        batch_from=settings.batch_from,
        max_open=settings.max_open,
        parallel=settings.parallel,
        timeout_hours=settings.timeout_hours,
        settle_seconds=settings.settle_seconds,
        max_requests=settings.max_requests,
        max_bytes=None if settings.max_batch_mb is None else round(settings.max_batch_mb * 1e6),
        land_every_pages=limits.land_every_pages,
        land_every_seconds=limits.land_every_seconds,
        capped=project.has_caps,
    )

    def new_recorder() -> Recorder:
        bedrock = settings if isinstance(settings, BedrockSettings) else None
        return Recorder(
            name,
            base_url=settings.base_url,
            api_key=key,
            runtime_url=None if bedrock is None else bedrock.runtime_url,
            region=None if bedrock is None else bedrock.region,
            live_calls=settings.live_calls if live_calls_may_go(project) else 0,
        )

    provider = open_provider(name, **_provider_settings(settings, key))
    return CloudPlace(provider, rules, project.folder / ".recipes", new_recorder, project.prices)


def _provider_settings(settings: CloudSettings, key: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {"base_url": settings.base_url}
    if isinstance(settings, BedrockSettings):
        return values | {
            "bucket": settings.bucket,
            "prefix": settings.prefix,
            "role_arn": settings.role_arn,
            "region": settings.region,
            "runtime_url": settings.runtime_url,
            "s3_url": settings.s3_url,
            "min_requests": settings.min_requests,
            "timeout_hours": settings.timeout_hours,
        }
    return values | {"api_key": key}


def _key(settings: CloudSettings, name: str) -> str | None:
    if settings.api_key_env is None:
        return None
    key = os.environ.get(settings.api_key_env)
    if not key:
        raise ConfigError(
            f"The place {name} takes its key from {settings.api_key_env}, which is not set; "
            "set it in the environment."
        )
    return key
