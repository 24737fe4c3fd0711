"""A running Dagster's GraphQL API, as much of it as a backfill needs. Imports no Dagster."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError, DagsterError

__all__ = ["BackfillState", "DagsterApi", "StepCounts"]

# An answer about 100,000 partitions takes some megabytes.
_MAX_BYTES = 256_000_000
_TIMEOUT = 60.0

_PARTITIONS = """
query Partitions($keys: [AssetKeyInput!]!) {
  assetNodes(assetKeys: $keys) {
    assetKey { path }
    partitionKeys
    assetPartitionStatuses {
      __typename
      ... on DefaultPartitionStatuses { materializedPartitions }
    }
  }
}"""

_LAUNCH = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
    ... on UnauthorizedError { message }
    ... on PartitionKeysNotFoundError { message }
    ... on PartitionSetNotFoundError { message }
    ... on InvalidSubsetError { message }
  }
}"""

_BACKFILL = """
query Backfill($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    __typename
    ... on PartitionBackfill {
      status
      numPartitions
      error { message }
      assetBackfillData { assetBackfillStatuses {
        ... on AssetPartitionsStatusCounts {
          assetKey { path }
          numPartitionsTargeted
          numPartitionsMaterialized
          numPartitionsFailed
        }
      } }
    }
    ... on BackfillNotFoundError { message }
    ... on PythonError { message }
  }
}"""

_OPEN = {"REQUESTED", "CANCELING", "FAILING"}


@dataclass(frozen=True)
class StepCounts:
    """Partitions of one step in a backfill."""

    targeted: int
    materialized: int
    failed: int


@dataclass(frozen=True)
class BackfillState:
    """How a backfill stands. `status` is Dagster's word, `error` why it failed as a whole."""

    status: str
    partitions: int
    steps: Mapping[str, StepCounts]
    error: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status not in _OPEN

    @property
    def succeeded(self) -> bool:
        """Whether every partition that it was for was materialized."""
        return self.status in ("COMPLETED_SUCCESS", "COMPLETED") and not any(
            step.failed or step.materialized < step.targeted for step in self.steps.values()
        )


class DagsterApi:
    """The API at the UI's URL. Every call raises `DagsterError` when there is no good answer."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"--url is where the Dagster UI answers, http://HOST:PORT, not {url}")
        self.url = url.rstrip("/")

    def partitions(
        self, recipe: str, steps: Sequence[str]
    ) -> dict[str, tuple[list[str], set[str]]]:
        """By step, the partitions Dagster knows and those of them that are materialized.

        A step that Dagster does not have is not in the answer.
        """
        keys = [{"path": [recipe, step]} for step in steps]
        nodes = self._ask(_PARTITIONS, {"keys": keys})["assetNodes"]
        return {
            node["assetKey"]["path"][-1]: (
                node["partitionKeys"],
                set((node["assetPartitionStatuses"] or {}).get("materializedPartitions") or ()),
            )
            for node in nodes
        }

    def launch(
        self,
        recipe: str,
        targets: Mapping[str, Sequence[str]],
        title: str,
        tags: Mapping[str, str] | None = None,
    ) -> str:
        """Launches a backfill of partitions by step and gives its id; its runs get the tags."""
        params: dict[str, Any] = {
            "title": title,
            "tags": [
                {"key": key, "value": value}
                for key, value in {"recipes/from": "recipes backfill", **(tags or {})}.items()
            ],
        }
        partitions = [list(keys) for keys in targets.values()]
        if all(keys == partitions[0] for keys in partitions):
            params["assetSelection"] = [{"path": [recipe, step]} for step in targets]
            params["partitionNames"] = partitions[0]
        else:
            params["partitionsByAssets"] = [
                {
                    "assetKey": {"path": [recipe, step]},
                    "partitions": {"ranges": [{"start": key, "end": key} for key in keys]},
                }
                for step, keys in targets.items()
            ]
        answer = self._ask(_LAUNCH, {"params": params})["launchPartitionBackfill"]
        if answer["__typename"] != "LaunchBackfillSuccess":
            raise DagsterError(
                f"Dagster at {self.url} did not launch the backfill: {_words(answer)}. "
                "Reload the code location in the UI if the project has changed."
            )
        return answer["backfillId"]

    def backfill(self, backfill_id: str) -> BackfillState:
        """How the backfill stands now."""
        found = self._ask(_BACKFILL, {"id": backfill_id})["partitionBackfillOrError"]
        if found["__typename"] != "PartitionBackfill":
            raise DagsterError(f"Dagster at {self.url} lost sight of it: {_words(found)}.")
        data = found["assetBackfillData"] or {}
        return BackfillState(
            status=found["status"],
            partitions=found["numPartitions"] or 0,
            steps={
                each["assetKey"]["path"][-1]: StepCounts(
                    targeted=each["numPartitionsTargeted"],
                    materialized=each["numPartitionsMaterialized"],
                    failed=each["numPartitionsFailed"],
                )
                for each in data.get("assetBackfillStatuses") or ()
                if each
            },
            error=None if found["error"] is None else _words(found["error"]),
        )

    def _ask(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(  # noqa: S310  the scheme was checked
            f"{self.url}/graphql", data=body, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
                raw = response.read(_MAX_BYTES + 1)
            answer = json.loads(raw) if len(raw) <= _MAX_BYTES else None
        except urllib.error.HTTPError as error:
            raise DagsterError(
                f"What answers at {self.url} is no Dagster UI, or one in trouble: "
                f"HTTP {error.code}. Name the UI's address with --url."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise DagsterError(
                f"No Dagster answers at {self.url} ({_reason(error)}). "
                "Start one with `recipes dev`, or name the UI's address with --url."
            ) from error
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or "data" not in answer:
            raise DagsterError(
                f"What answers at {self.url} is no Dagster UI. Name the UI's address with --url."
            )
        if answer.get("errors") or answer["data"] is None:
            raise DagsterError(f"Dagster at {self.url} refused: {_first(answer.get('errors'))}.")
        return answer["data"]


def _words(answer: Mapping[str, Any]) -> str:
    text = " ".join(str(answer.get("message") or answer["__typename"]).split())
    return text[:500].rstrip(".")


def _first(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) and errors else {}
    text = first.get("message", "no reason given") if isinstance(first, dict) else str(first)
    return " ".join(text.split())[:500].rstrip(".")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__
