"""Batch folders on the rehearsed hub: sent once, compared, sent again where something was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes_orchestration.errors import PlaceError, ProviderError, Refused, Unreachable
from recipes_orchestration.places.hf_jobs import store as hf_store
from recipes_orchestration.places.hf_jobs.hub import Hub
from recipes_orchestration.places.hf_jobs.shelves import DatasetShelf
from recipes_orchestration.places.hf_jobs.store import Listed, Store, is_inside
from recipes_orchestration.rehearsal import HUB, HUB_TOKEN, HUB_USER, HubScript, Rehearsal

REPOSITORY = f"{HUB_USER}/batches"
FILES = {
    "lines-1/0/manifest.json": b"{}",
    "pages/one.jpg": b"\xff\xd8 one",
    "pages/two.jpg": b"\xff\xd8 two",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "letters/0001" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path


@pytest.fixture
def store(hub: Rehearsal) -> Store:
    return store_of(hub)


def store_of(hub: Rehearsal, token: str = HUB_TOKEN, namespace: str = HUB_USER) -> Store:
    return Store(DatasetShelf(Hub(namespace, token, hub.url), f"{namespace}/batches"), "archive")


def there(hub: Rehearsal) -> dict[str, bytes]:
    start = "archive/letters/0001/"
    return {
        path[len(start) :]: hub.hub.read(REPOSITORY, path)
        for path in hub.hub.files(REPOSITORY)
        if path.startswith(start)
    }


def send(store: Store, root: Path) -> int:
    return store.send(root, "letters/0001", FILES)


def commits(hub: Rehearsal) -> int:
    return hub.counts(HUB)["commits"]


def test_a_batch_folder_is_sent_as_it_is(hub: Rehearsal, store: Store, root: Path):
    assert send(store, root) == 3
    assert there(hub) == FILES


def test_what_was_sent_is_not_sent_again(hub: Rehearsal, root: Path):
    send(store_of(hub), root)
    before = commits(hub)
    assert send(store_of(hub), root) == 0
    assert commits(hub) == before


def test_what_was_sent_in_part_is_completed(hub: Rehearsal, store: Store, root: Path):
    store.send(root, "letters/0001", ["pages/one.jpg"])
    assert send(store, root) == 2
    assert there(hub) == FILES


def test_a_file_that_changed_is_sent_again(hub: Rehearsal, store: Store, root: Path):
    send(store, root)
    (root / "letters/0001/pages/one.jpg").write_bytes(b"\xff\xd8 ONE")
    assert send(store, root) == 1
    assert there(hub)["pages/one.jpg"] == b"\xff\xd8 ONE"


def test_a_file_that_was_lost_without_a_word_is_sent_again(
    hub: Rehearsal, store: Store, root: Path
):
    hub.script(HUB, HubScript(lose_files=["*/two.jpg"]))
    assert send(store, root) == 4
    assert there(hub) == FILES


def test_a_file_that_was_kept_by_half_is_sent_again(hub: Rehearsal, store: Store, root: Path):
    hub.script(HUB, HubScript(cut_files=["*/two.jpg"]))
    assert send(store, root) == 4
    assert there(hub) == FILES


def test_a_file_that_is_always_lost_is_said_and_nothing_is_in_doubt(
    hub: Rehearsal, store: Store, root: Path
):
    hub.script(HUB, HubScript(lose_files=["*/two.jpg"] * 10))
    with pytest.raises(Unreachable, match=r"took 1 files 3 times .* letters/0001/pages/two.jpg"):
        send(store, root)


def test_a_commit_whose_reply_was_lost_is_not_made_twice(hub: Rehearsal, store: Store, root: Path):
    hub.script(HUB, HubScript(lose_commit_reply=1))
    send(store, root)
    assert there(hub) == FILES


def test_a_commit_that_failed_for_a_moment_is_made_again(hub: Rehearsal, store: Store, root: Path):
    hub.script(HUB, HubScript(commit_status=[503]))
    send(store, root)
    assert there(hub) == FILES


def test_many_files_go_in_commits_of_a_bounded_size(
    hub: Rehearsal, store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hf_store, "PART_FILES", 2)
    before = commits(hub)
    send(store, root)
    assert commits(hub) == before + 2


def test_a_long_list_of_files_is_read_to_its_end(hub: Rehearsal, store: Store, root: Path):
    send(store, root)
    hub.script(HUB, HubScript(tree_page=1))
    assert send(store, root) == 0


def test_a_wrong_token_is_refused_for_the_account(hub: Rehearsal, root: Path):
    with pytest.raises(Refused) as refused:
        send(store_of(hub, token="hf_of_somebody"), root)
    assert refused.value.account


def test_no_message_shows_the_token(hub: Rehearsal, root: Path):
    with pytest.raises(Refused) as refused:
        send(store_of(hub, token="hf_of_somebody"), root)
    assert "hf_of_somebody" not in str(refused.value)


def test_a_namespace_of_others_is_refused_for_the_account(hub: Rehearsal, root: Path):
    with pytest.raises(Refused) as refused:
        send(store_of(hub, namespace="others"), root)
    assert refused.value.account


def test_pages_do_not_go_where_everybody_can_read_them(hub: Rehearsal, root: Path):
    from huggingface_hub import HfApi

    HfApi(endpoint=hub.url, token=HUB_TOKEN).create_repo(
        REPOSITORY, repo_type="dataset", private=False
    )
    with pytest.raises(Refused, match="can be read by everybody"):
        send(store_of(hub), root)


def test_a_hub_that_is_not_there_is_unreachable(root: Path):
    store = Store(DatasetShelf(Hub(HUB_USER, HUB_TOKEN, "http://127.0.0.1:9"), REPOSITORY), "a")
    with pytest.raises(Unreachable):
        send(store, root)


def test_a_file_that_is_gone_here_is_said(store: Store, root: Path):
    (root / "letters/0001/pages/one.jpg").unlink()
    with pytest.raises(PlaceError, match="cannot be read: No such file"):
        send(store, root)


def test_results_come_back_as_they_are(store: Store, root: Path, tmp_path: Path):
    send(store, root)
    fetched = store.fetch("letters/0001/pages", ["one.jpg", "three.jpg"], tmp_path / "back", 100)
    assert {name: path.read_bytes() for name, path in fetched.files.items()} == {
        "one.jpg": b"\xff\xd8 one"
    }


def test_files_that_nobody_asked_for_are_counted_and_left(store: Store, root: Path, tmp_path: Path):
    send(store, root)
    assert store.fetch("letters/0001/pages", ["one.jpg"], tmp_path / "back", 100).strange == 1
    assert [each.name for each in (tmp_path / "back").iterdir()] == ["one.jpg"]


def test_a_file_that_is_too_large_is_not_fetched(store: Store, root: Path, tmp_path: Path):
    send(store, root)
    with pytest.raises(ProviderError, match="has 6 bytes at the Hub; at most 5 are fetched"):
        store.fetch("letters/0001/pages", ["one.jpg"], tmp_path / "back", 5)


def test_a_path_that_leads_out_of_the_folder_is_not_seen(
    hub: Rehearsal, store: Store, root: Path, tmp_path: Path
):
    send(store, root)
    hub.hub.put(REPOSITORY, "archive/letters/0001/pages/../../../../escaped.txt", b"out")
    assert sorted(store.sizes("letters/0001/pages")) == ["one.jpg", "two.jpg"]


def test_bytes_that_are_not_those_of_the_list_are_not_believed(tmp_path: Path):
    # The hub cannot be made to list one file and give another, so this shelf does.
    class Lying:
        def listed(self, folder: str) -> dict[str, Listed]:
            return {f"{folder}/a": Listed(f"{folder}/a", 3)}

        def fetch(self, listed: Listed, to: Path) -> None:
            to.write_bytes(b"abc")

        def same(self, file: Path, listed: Listed) -> bool:
            return False

    store = Store(Lying(), "top")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ProviderError, match="3 times with other bytes"):
        store.fetch("folder", ["a"], tmp_path / "back", 100)
    assert list((tmp_path / "back").iterdir()) == []


def test_a_task_that_landed_is_removed_and_the_pages_of_others_stay(
    hub: Rehearsal, store: Store, root: Path
):
    send(store, root)
    (root / "letters/0001/lines-2/0").mkdir(parents=True)
    (root / "letters/0001/lines-2/0/manifest.json").write_bytes(b"{ }")
    store.send(root, "letters/0001", ["lines-2/0/manifest.json"])
    store.remove("letters/0001", "lines-1/0")
    assert sorted(there(hub)) == ["lines-2/0/manifest.json", "pages/one.jpg", "pages/two.jpg"]


def test_nothing_is_left_of_a_batch_whose_tasks_have_landed(
    hub: Rehearsal, store: Store, root: Path
):
    send(store, root)
    store.remove("letters/0001", "lines-1/0")
    assert there(hub) == {}


@pytest.mark.parametrize(
    "path", ["a/../b", "a/./b", "a//b", "a/b\\c", "b/c", "a", "../a/b", "/a/b"]
)
def test_such_a_path_is_none_of_the_folder(path: str):
    assert not is_inside(path, "a")
