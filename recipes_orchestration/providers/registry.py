"""The providers by name, each loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from ..errors import ConfigError
from .provider import Provider

__all__ = ["PROVIDERS", "open_provider"]

# Module in this package, and class.
PROVIDERS: dict[str, tuple[str, str]] = {
    "anthropic": ("anthropic_provider", "AnthropicProvider"),
    "openai": ("openai_provider", "OpenAIProvider"),
    "gemini": ("gemini_provider", "GeminiProvider"),
    "bedrock": ("bedrock_provider", "BedrockProvider"),
}


def open_provider(name: str, **settings: Any) -> Provider:
    """The provider of that name; `settings` are its class's own, such as `base_url`, `api_key`
    and `timeout`. Opens no connection and needs no SDK. Raises `ConfigError` for an unknown name.
    """
    if name not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise ConfigError(f"There is no provider {name}; there are {known}.")
    module, kind = PROVIDERS[name]
    return cast("Provider", getattr(import_module(f".{module}", __package__), kind)(**settings))
