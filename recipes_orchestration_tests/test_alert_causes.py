"""Every kind of alert end to end: told once to each channel, and again when it came back later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from moto.server import ThreadedMotoServer

from recipes_orchestration.engine.alerts import (
    configured_channels,
    look_for_alerts,
    tell_alerts,
)
from recipes_orchestration.ledger.alerts import AlertKind
from recipes_orchestration.ledger.tables import alerts
from recipes_orchestration.orchestration.alerting import log_channel
from recipes_orchestration.rehearsal import Rehearsal

from .alert_causes import CAUSES, Scene
from .alert_receivers import mail_server, receiver
from .cloud_archive import make_cloud_archive
from .test_alerts import earlier

pytestmark = pytest.mark.usefixtures("restored_path")

SECRET = "s3cret"


class Topic:
    """A topic of SNS, and what its subscriber was told."""

    def __init__(self, url: str) -> None:
        session = boto3.session.Session()
        self.url = url
        self._sns = session.client("sns", endpoint_url=url, region_name="eu-central-1")
        self._sqs = session.client("sqs", endpoint_url=url, region_name="eu-central-1")
        self.arn = self._sns.create_topic(Name="recipes")["TopicArn"]
        self._queue = self._sqs.create_queue(QueueName="told")["QueueUrl"]
        self._sns.subscribe(
            TopicArn=self.arn, Protocol="sqs", Endpoint="arn:aws:sqs:eu-central-1:123456789012:told"
        )

    def take(self) -> list[str]:
        """What came since this was asked."""
        found: list[str] = []
        while messages := self._sqs.receive_message(
            QueueUrl=self._queue, MaxNumberOfMessages=10
        ).get("Messages"):
            for message in messages:
                found.append(message["Body"])
                self._sqs.delete_message(
                    QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"]
                )
        return found

    def close(self) -> None:
        self._sns.close()
        self._sqs.close()


@pytest.fixture(scope="module")
def amazon() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def topic(rehearsal: Rehearsal, amazon: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Topic]:
    # After the rehearsal, whose Bedrock is of the same moto and begins with nothing.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", os.environ.get("AWS_ACCESS_KEY_ID") or "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", os.environ.get("AWS_SECRET_ACCESS_KEY") or "test")
    told = Topic(amazon)
    yield told
    told.close()


class Told:
    """What each channel was told since the last look at it."""

    def __init__(self, scene: Scene, hook: Any, box: Any, topic: Topic) -> None:
        self._scene, self._hook, self._box, self._topic = scene, hook, box, topic
        self.log: list[str] = []

    def warning(self, msg: object, *args: object) -> None:
        self.log.append(str(msg) % args)

    def ticks(self, kind: str) -> list[int]:
        """How often each channel was told of the kind in three ticks of three processes."""
        for _ in range(3):
            with self._scene.archive.engine() as engine:
                look_for_alerts(engine)
                channels = [log_channel(self), *configured_channels(engine)]
                assert len(channels) == 4
                assert tell_alerts(engine, channels, 20) == []
        title = TITLES[kind]
        counts = [
            sum(f"Alert: test: {title}." in line for line in self.log),
            self._hook.kinds().count(kind),
            sum(mail["Subject"] == f"test: {title}" for mail in self._box.mails),
            sum(title in body for body in self._topic.take()),
        ]
        assert SECRET not in "".join(self.log)
        self.log.clear()
        self._hook.posts.clear()
        self._box.mails.clear()
        return counts


TITLES = {
    "hold": "pages wait for a person",
    "paused": "a place is paused",
    "cap": "a spending cap is reached",
    "waiting": "a batch waits for long",
    "dearer": "a batch cost more than its estimate",
    "slower": "a step takes longer and longer",
    "deadline": "a deadline has passed",
}


def test_every_kind_is_brought_about() -> None:
    assert set(CAUSES) == {kind.value for kind in AlertKind}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CAUSES)
def test_a_cause_is_told_once_and_again_when_it_came_back(
    tmp_path: Path,
    rehearsal: Rehearsal,
    topic: Topic,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    cause = CAUSES[kind]
    with receiver() as hook, mail_server() as box:
        monkeypatch.setenv("HOOK", hook.url)
        assert SECRET in hook.url
        mail = {"host": "127.0.0.1", "port": box.port, "security": "none"}
        more: dict[str, Any] = {
            "alerts": {
                "webhook": {"url_env": "HOOK"},
                "email": {**mail, "sender": "me@archive.example", "to": ["ada@archive.example"]},
                "sns": {"topic": topic.arn, "endpoint_url": topic.url},
            }
        }
        archive = make_cloud_archive(tmp_path / "project", pages=3, **more)
        scene = Scene(archive, rehearsal, more)
        scene.write()
        told = Told(scene, hook, box, topic)
        for _ in range(2):
            cause.files(scene)
            with archive.engine() as engine:
                cause.begin(scene, engine)
            assert told.ticks(kind) == [1, 1, 1, 1]
            cause.mend(scene)
            with archive.engine() as engine:
                cause.end(scene, engine)
            assert told.ticks(kind) == [0, 0, 0, 0]
            with archive.engine() as engine:
                (alert,) = [each for each in engine.ledger.alerts.all() if each.kind == kind]
                assert alert.ended_at is not None
                earlier(engine.ledger, alerts.c.ended_at, timedelta(hours=2))
