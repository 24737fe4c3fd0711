"""Which modules may open a connection, and which one may hand pages to a place."""

from __future__ import annotations

import ast
import socket
from pathlib import Path

import pytest

import recipes_orchestration

ROOT = Path(recipes_orchestration.__file__).parent

# What speaks to other machines, by the top-level package or the module.
CLIENTS = frozenset(
    {"anthropic", "openai", "google", "boto3", "botocore", "huggingface_hub", "paramiko"}
    | {"httpx", "httpx2", "requests", "aiohttp", "urllib3", "websockets", "grpc"}
    | {"urllib.request", "http.client", "smtplib", "ftplib", "imaplib", "telnetlib", "xmlrpc"}
    | {"asyncio.streams", "socketserver"}
)
MAY = {
    "providers": "asks models; its places are behind the gates",
    "places/hf_jobs/": "the jobs of the hub; behind the gates",
    "runner/hub_files.py": "the far side fetches what was sent to it",
    "channels": "alerts; no pages",
    "commands/dagster_api.py": "the person's own Dagster",
    "commands/demo_cloud.py": "the rehearsed provider on this machine",
    "rehearsal": "the rehearsed providers",
}
FILES = ("pages/", "library/")
"""May use fsspec: where the person keeps the pages and wants the results."""


def modules() -> list[tuple[str, ast.Module]]:
    files = sorted(file for file in ROOT.rglob("*.py") if "__pycache__" not in file.parts)
    return [(str(file.relative_to(ROOT)), ast.parse(file.read_text())) for file in files]


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def clients_of(tree: ast.Module) -> set[str]:
    return {
        name
        for name in imported(tree)
        if name in CLIENTS or name.partition(".")[0] in CLIENTS or name.startswith("urllib.request")
    }


def calls(tree: ast.AST, *methods: str) -> list[str]:
    """The calls of methods of these names, as `object.method`."""
    return [
        ast.unparse(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
    ]


def test_no_other_module_opens_a_connection():
    found = {
        f"{name}: {sorted(clients)}"
        for name, tree in modules()
        if (clients := clients_of(tree)) and not name.startswith(tuple(MAY))
    }
    assert found == set()


def test_each_exception_is_one():
    """A module that no longer needs to be named here is not named."""
    used = {
        part
        for name, tree in modules()
        for part in MAY
        if name.startswith(part) and clients_of(tree)
    }
    assert used == set(MAY)


def test_other_file_systems_are_for_pages_and_results_alone():
    found = {name for name, tree in modules() if {"fsspec", "upath"} & imported_packages(tree)}
    assert {name for name in found if not name.startswith(FILES)} == set()


def imported_packages(tree: ast.Module) -> set[str]:
    return {name.partition(".")[0] for name in imported(tree)}


def test_sockets_are_not_connected_by_hand():
    found = {
        (name, call)
        for name, tree in modules()
        if "socket" in imported_packages(tree) and not name.startswith("rehearsal/")
        for call in calls(tree, "connect", "connect_ex", "create_connection", "sendto")
    }
    assert found == set()


def test_pages_are_packaged_and_handed_over_in_one_module():
    """It is the one whose every way passes the gates."""
    above = ("engine/", "orchestration/", "commands/", "cli.py", "console.py", "definitions.py")
    found = {
        name for name, tree in modules() if name.startswith(above) and calls(tree, "pack", "submit")
    }
    assert found == {"engine/send.py"}


def test_nothing_is_packaged_before_the_gates():
    """`send` asks the gates, and it alone calls what packages and hands over."""
    (tree,) = [tree for name, tree in modules() if name == "engine/send.py"]
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    def callers(of: str) -> set[str]:
        return {
            name
            for name, function in functions.items()
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == of
        }

    (packs,) = [name for name, function in functions.items() if calls(function, "pack")]
    assert callers(packs) == {"send"}
    body = ast.unparse(functions["send"])
    assert body.index("gate(") < body.index(f"{packs}(")
    # The gates are asked again between packaging and handing over.
    again = ast.unparse(functions[packs])
    assert again.index("place.pack(") < again.index("gate(") < again.index("_send_group(")


def test_one_function_decides_and_the_gates_ask_it():
    asks = {name for name, tree in modules() if "missing_consent" in ast.unparse(tree)}
    assert "engine/gates.py" in asks
    # Outside of it, the project's yes is read from the file and handed on, and not judged.
    judges = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.IfExp | ast.BoolOp)
        and "pages_may_leave"
        in ast.unparse(node.test if not isinstance(node, ast.BoolOp) else node)
    }
    assert judges - {"commands/backfilling.py"} == {"engine/consent.py"}


@pytest.mark.parametrize("address", [("192.0.2.1", 443), ("2001:db8::1", 443)])
def test_the_tests_themselves_reach_no_other_machine(address: tuple[str, int]):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as door, pytest.raises(PermissionError, match="tests may speak"):
        door.connect(address)
