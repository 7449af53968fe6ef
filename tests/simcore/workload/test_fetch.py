import dataclasses
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from simcore.core.errors import FileError, UnknownNameError
from simcore.workload.fetch import KnownTrace, fetch, known_trace, known_traces
from simcore.workload.traces import FORMATS, read_trace

BODY = b"arrival_s,prompt_tokens,output_tokens\n" + b"0,10,20\n" * 5000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing.csv":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000] if self.path == "/cut.csv" else BODY)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def trace(server):
    digest = hashlib.sha256(BODY).hexdigest()
    return KnownTrace("tiny", "Tiny", f"{server}/tiny.csv", "tiny.csv", "csv", digest, len(BODY), "CC0", "nobody")


def test_a_trace_is_fetched_once(trace, tmp_path):
    path = fetch(trace, tmp_path / "new" / "folder")
    assert path.read_bytes() == BODY
    assert [entry.name for entry in path.parent.iterdir()] == ["tiny.csv"]
    assert len(read_trace(path, trace.format)) == 5000
    unreachable = dataclasses.replace(trace, url="http://127.0.0.1:9/gone")
    assert fetch(unreachable, path.parent) == path


FAILURES = [
    ({"sha256": "0" * 64}, "is not the pinned file: expected SHA-256 000"),
    ({"bytes": 500}, "holds more than 500 bytes"),
    ({"url": "/missing.csv"}, "the server answered 404"),
    ({"url": "/cut.csv"}, "ended after 1,000 of"),
    ({"url": "http://127.0.0.1:9/refused"}, "cannot be downloaded"),
]


@pytest.mark.parametrize(("change", "problem"), FAILURES)
def test_a_failure_leaves_nothing_behind(server, trace, tmp_path, change, problem):
    if change.get("url", "").startswith("/"):
        change = {"url": server + change["url"]}
    with pytest.raises(FileError, match=problem):
        fetch(dataclasses.replace(trace, **change), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_file_in_the_way_is_kept(trace, tmp_path):
    (tmp_path / "tiny.csv").write_text("mine")
    with pytest.raises(FileError, match="is in the way"):
        fetch(trace, tmp_path)
    assert (tmp_path / "tiny.csv").read_text() == "mine"


def test_a_folder_that_cannot_be_made(trace, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        fetch(trace, tmp_path / "file" / "folder")


def test_known_traces_are_pinned_and_licensed():
    for trace in known_traces().values():
        assert trace.url.startswith("https://")
        assert len(bytes.fromhex(trace.sha256)) == 32
        assert trace.format in FORMATS
        assert trace.licence
        assert trace.citation


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'azure-conv-2023'"):
        known_trace("azure-conv")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("azure-conv-2023", "azure2023/AzureLLMInferenceTrace_conv.csv"),
        ("azure-code-2023", "azure2023/AzureLLMInferenceTrace_code.csv"),
        ("mooncake-conversation", "mooncake/conversation_trace.jsonl"),
        ("mooncake-synthetic", "mooncake/synthetic_trace.jsonl"),
    ],
)
def test_the_pins_are_those_of_the_real_files(shared_data, name, path):
    content = (shared_data / "traces" / path).read_bytes()
    trace = known_trace(name)
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (trace.sha256, trace.bytes)
