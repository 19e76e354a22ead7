"""A server in a process of its own that answers what huggingface_hub asks for models.

Usage: python hub_server.py ROOT

A model is a folder ROOT/OWNER/NAME with one folder per revision. The file ROOT/fault, if there is one, names
what goes wrong: `500` (an error of the server), `gone` (files answer 404), `cut` (files end in the middle) or
`outside` (the list of files has one that leads out of every folder).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(*sys.argv[1:2])  # a collector of doctests imports this file without one
TOKEN = "Bearer hf_test"


def files_of(revision: Path) -> dict[str, bytes]:
    found = sorted(p for p in revision.rglob("*") if p.is_file())
    return {p.relative_to(revision).as_posix(): p.read_bytes() for p in found}


def commit_of(files: dict[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The paths of the hub's API that are needed to find, read and write a model."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        fault = self.fault()
        path = unquote(urlsplit(self.path).path)
        if fault == "500":
            self.answer(500, b"the disk is on fire")
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/(.+)", path):
            self.describe(match[1], match[2], match[3], fault)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self.give(match[1], match[2], match[3], fault)
        else:
            self.answer(404, b"no such path")

    do_HEAD = do_GET  # noqa: N815  the name that the base class calls

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        if self.fault() == "500":
            self.answer(500, b"the disk is on fire")
        elif path == "/api/validate-yaml":
            self.answer_json({"warnings": [], "errors": []})
        elif self.headers.get("Authorization") != TOKEN:
            self.answer(401, b"not you", {"X-Error-Message": "Invalid username or password."})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            (ROOT / name / "main").mkdir(parents=True, exist_ok=True)
            self.answer_json({"url": f"http://{self.headers['Host']}/{name}", "id": "1"})
        elif match := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            files = [one["path"] for one in json.loads(body)["files"]]
            modes = [{"path": one, "uploadMode": "regular", "shouldIgnore": False} for one in files]
            self.answer_json({"files": modes})
        elif match := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            self.commit(match[1], [json.loads(line) for line in body.splitlines()])
        else:
            self.answer(404, b"no such path")

    def fault(self) -> str:
        file = ROOT / "fault"
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def revision(self, name: str, wanted: str) -> Path | None:
        """The folder of a revision, which is asked for by its name or its commit."""
        known = [p for p in (ROOT / name).iterdir() if p.is_dir()]
        return next((p for p in known if wanted in (p.name, commit_of(files_of(p)))), None)

    def describe(self, name: str, what: str, wanted: str, fault: str) -> None:
        if not (ROOT / name).is_dir():
            self.answer(401, b"no such model", {"X-Error-Code": "RepoNotFound"})
            return
        folder = self.revision(name, wanted)
        if folder is None:
            self.answer(404, b"no such revision", {"X-Error-Code": "RevisionNotFound"})
            return
        files = files_of(folder)
        listed = [
            {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            for path, content in files.items()
        ]
        if fault == "outside":
            listed.append(
                {"type": "file", "path": "code/../../../../../../escaped.py", "size": 4, "oid": "0" * 40}
            )
        self.answer_json({"id": name, "sha": commit_of(files)} if what == "revision" else listed)

    def give(self, name: str, commit: str, path: str, fault: str) -> None:
        folder = self.revision(name, commit)
        content = files_of(folder).get(path, b"evil") if folder is not None else b""
        if fault == "gone":
            self.answer(404, b"no such file", {"X-Error-Code": "EntryNotFound"})
            return
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit}
        self.answer(200, content, headers, cut=fault == "cut")

    def commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["key"] == "file":
                target = ROOT / name / "main" / line["value"]["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(base64.b64decode(line["value"]["content"]))
        commit = commit_of(files_of(ROOT / name / "main"))
        where = f"http://{self.headers['Host']}/{name}/commit/{commit}"
        self.answer_json({"commitUrl": where, "commitOid": commit, "hookOutput": ""})

    def answer_json(self, content: Any) -> None:
        self.answer(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def answer(
        self, status: int, content: bytes, headers: dict[str, str] | None = None, cut: bool = False
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = cut

    def log_message(self, format: str, *args: Any) -> None:
        with (ROOT / "log").open("a", encoding="utf-8") as file:
            file.write(f"{self.requestline}\n")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    print(server.server_address[1], flush=True)
    server.serve_forever()
