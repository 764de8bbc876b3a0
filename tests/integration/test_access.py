"""Who may ask over HTTP: tokens, roles, cookies, other hosts' pages, and a prefix of a proxy's paths."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import chromium, watched
from tests.support.marks import one_a_change
from tests.support.server import OPERATOR, READER, Served, served
from tests.support.statuses import NAME, now, status
from tests.support.waiting import eventually
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board

CLOSED = [
    *("/v1/comparisons", f"/v1/comparisons/{NAME}", f"/v1/comparisons/{NAME}/gate", "/v1/events", "/v1/me"),
    *("/v1/service", f"/v1/comparisons/{NAME}/file"),
    *("/metrics", "/openapi.json", "/v1/nothing", "/nothing", "/static", "/healthz/", "//healthz"),
]
OPEN = ["/healthz", "/readyz", "/login", "/static/base.css", "/static/js/login.js", "/favicon.ico"]


def begin(service: Served) -> Served:
    service.publish(status(at=now()))
    return service


@pytest.fixture
def service(tokens: Path) -> Iterator[Served]:
    with served(Board(stale_after_seconds=60), keys=TokenFile(str(tokens))) as service:
        yield begin(service)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def ask(service: Served, path: str, method: str = "GET", **more: Any) -> httpx.Response:
    return httpx.request(method, service.url + path, trust_env=False, timeout=10, **more)


def test_without_a_token_nothing_is_told_but_probes_and_files_without_data(service: Served) -> None:
    for path in CLOSED:
        response = ask(service, path)
        assert response.status_code == 401, path
        assert response.headers["www-authenticate"] == 'Bearer realm="twinstream"'
        assert response.headers["content-type"] == "application/problem+json"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.json()["detail"] == "A token is needed: send it as `Authorization: Bearer TOKEN`."
    for path in OPEN:
        assert ask(service, path).status_code == 200, path


def test_either_role_may_look_and_is_known_by_name(service: Served) -> None:
    for token, name in [(READER, "viewer"), (OPERATOR, "anna")]:
        for path in ("/v1/comparisons", f"/v1/comparisons/{NAME}/gate", "/metrics", "/openapi.json"):
            assert ask(service, path, headers=bearer(token)).status_code == 200
        assert ask(service, "/v1/me", headers=bearer(token)).json()["name"] == name


def test_a_token_that_is_none_is_refused(service: Served) -> None:
    texts = ("Bearer " + "x" * 30, "Bearer", READER, "Basic !")
    odd = {"Authorization": "Basic éé".encode()}
    for header in (*({"Authorization": text} for text in texts), odd, {"Cookie": "twinstream_token=x"}):
        response = ask(service, "/v1/comparisons", headers=header)
        assert response.status_code == 401, header
        assert READER not in response.text


def test_a_token_may_be_the_password_of_an_address(service: Served) -> None:
    name_and_token = base64.b64encode(f"anyone:{READER}".encode()).decode()
    headers = {"Authorization": f"Basic {name_and_token}"}
    assert ask(service, "/v1/me", headers=headers).json()["name"] == "viewer"


def test_the_login_at_a_proxy_that_passes_it_on_does_not_hide_the_cookie(service: Served) -> None:
    login = {"Authorization": f"Basic {base64.b64encode(b'anyone:of the proxy').decode()}"}
    cookie = {"Cookie": f"twinstream_token={READER}"}
    assert ask(service, "/v1/me", headers=login | cookie).json()["name"] == "viewer"
    for headers in (login, login | {"Cookie": "twinstream_token=x"}, bearer("x" * 30) | cookie):
        assert ask(service, "/v1/me", headers=headers).status_code == 401


def test_changes_need_the_role_operate(service: Served) -> None:
    path = f"/v1/comparisons/{NAME}/reset"
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        refused = ask(service, path, method, headers=bearer(READER), json={})
        assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
        assert refused.headers["www-authenticate"].endswith('error="insufficient_scope", scope="operate"')
        why = f"{method} {path} needs the role operate, and viewer has the role read."
        assert refused.json()["detail"] == why
        assert ask(service, path, method, headers=bearer(OPERATOR), json={}).status_code not in (401, 403)


def test_to_ask_the_gate_by_post_needs_no_more_than_to_look(service: Served) -> None:
    for form, code in (("strict", 200), ("rollback", 409)):
        path = f"/v1/comparisons/{NAME}/gate/{form}"
        assert ask(service, path, "POST", headers=bearer(READER), json={}).status_code == code
        assert ask(service, path, "POST", json={}).status_code == 401


def test_a_withdrawn_token_is_refused_and_its_streams_end(service: Served, tokens: Path) -> None:
    with httpx.stream("GET", service.url + "/v1/events", headers=bearer(READER), trust_env=False) as stream:
        lines = stream.iter_lines()
        assert next(lines)
        tokens.write_text(f"operate anna {OPERATOR}\n")
        service.publish(status(at=now()))
        for _ in lines:
            pass
    assert ask(service, "/v1/comparisons", headers=bearer(READER)).status_code == 401
    eventually(lambda: service.call(lambda: service.board.listeners) == 0, what="the stream has ended")


def test_a_cookie_is_given_for_a_token_and_taken_back(service: Served) -> None:
    with httpx.Client(base_url=service.url, trust_env=False) as http:
        assert http.get("/").headers["location"] == "login"
        assert http.post("/login", json={"token": "wrong"}).status_code == 401
        answer = http.post("/login", json={"token": OPERATOR})
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 204
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert "Max-Age" not in cookie
        assert http.get("/v1/me").json() == {"name": "anna", "role": "operate", "tokens": True}
        assert http.post("/logout", json={}).status_code == 204
        assert http.get("/v1/me").status_code == 401
        behind_tls = {"X-Forwarded-Proto": "https"}
        again = http.post("/login", json={"token": OPERATOR}, headers=behind_tls)
        assert "Secure" in again.headers["set-cookie"]


JSON = "application/json"
SENT = [
    ({"Origin": "https://evil.example", "Content-Type": JSON}, 403),
    ({"Origin": "null", "Content-Type": JSON}, 403),
    ({"Origin": "http://[::1", "Content-Type": JSON}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Content-Type": JSON}, 403),
    ({"Sec-Fetch-Site": "same-site", "Content-Type": JSON}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Content-Type": "text/plain"}, 415),
    ({"Cookie": "other=1", "Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"Sec-Fetch-Site": "same-origin", "Content-Type": f"{JSON}; charset=utf-8"}, 204),
]


@pytest.mark.parametrize("guarded", [True, False])
def test_a_page_of_another_host_changes_nothing(tokens: Path, guarded: bool) -> None:
    with served(Board(), keys=TokenFile(str(tokens)) if guarded else None) as service:
        for headers, code in SENT:
            sent = {**headers, **(bearer(OPERATOR) if guarded else {})}
            assert ask(service, "/logout", "POST", headers=sent, content=b"{}").status_code == code, headers


def test_without_tokens_only_names_of_this_host_are_answered() -> None:
    others = ("evil.example", "evil.example:8080", "localhost.evil.example", "", "[::2", "10.0.0.1")
    with served(Board()) as service:
        for host in others:
            refused = ask(service, "/v1/comparisons", headers={"Host": host})
            told = refused.status_code, refused.headers["content-type"]
            assert told == (421, "application/problem+json"), host
            assert ask(service, "/healthz", headers={"Host": host}).status_code == 200
        own_names = ("localhost", f"localhost:{service.port}", "127.0.0.1:1", "[::1]:8080", "LOCALHOST")
        for own in (*own_names, "127.0.0.2:8080", "[0:0:0:0:0:0:0:1]", "localhost.:8080"):
            assert ask(service, "/v1/comparisons", headers={"Host": own}).status_code == 200, own


def test_without_tokens_nobody_signs_in() -> None:
    with served(Board()) as service:
        assert ask(service, "/login").headers["location"] == "./"
        assert ask(service, "/v1/me").json() == {"name": "local", "role": "operate", "tokens": False}


@pytest.mark.parametrize("prefix", ["/twinstream", ""], ids=["kept by the proxy", "taken off by the proxy"])
def test_a_base_path_is_honoured_whether_a_proxy_keeps_it_or_not(tokens: Path, prefix: str) -> None:
    with served(Board(), keys=TokenFile(str(tokens)), base_path="/twinstream") as service:
        for path in ("/healthz", "/static/base.css", "/login"):
            assert ask(service, prefix + path).status_code == 200
        assert ask(service, prefix + "/v1/comparisons").status_code == 401
        assert ask(service, prefix + "/").headers["location"] == "/twinstream/login"
        reading = {"headers": bearer(READER)}
        assert ask(service, prefix + "/v1/comparisons", **reading).status_code == 200
        servers = ask(service, prefix + "/openapi.json", **reading).json()["servers"]
        assert servers == [{"url": "/twinstream"}]
        nothing = ask(service, prefix + "/nothing", **reading).json()["detail"]
        assert nothing == "No route '/twinstream/nothing'; /twinstream/docs lists all routes."
        given = ask(service, prefix + "/login", "POST", json={"token": READER}).headers["set-cookie"]
        assert "Path=/twinstream" in given


def test_the_base_path_alone_leads_to_the_page() -> None:
    with served(Board(), base_path="/twinstream") as service:
        assert ask(service, "/twinstream").headers["location"] == "/twinstream/"
        assert ask(service, "/twinstreams").status_code == 404


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.requires_chromium
@pytest.mark.parametrize("base", one_a_change(["/twinstream", ""]))
def test_the_page_asks_for_a_token_once_and_again_when_it_is_withdrawn(
    browser: Browser, tokens: Path, base: str
) -> None:
    with (
        served(Board(stale_after_seconds=60), keys=TokenFile(str(tokens)), base_path=base) as service,
        watched(browser) as watch,
    ):
        page = watch.page
        begin(service)
        page.goto(f"{service.url}{base}/#/{NAME}")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
        watch.errors.clear()  # Chromium reports each 401
        page.get_by_label("Token").fill(READER)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("EQUIVALENT")
        expect(page.locator("#connection")).to_have_text("connected")
        expect(page.locator("#session")).to_contain_text("Signed in as viewer, who may only look")
        assert page.evaluate("document.cookie") == ""
        assert watch.errors == []
        page.goto(f"{service.url}{base}/docs")
        expect(page.locator("#docs")).to_contain_text("All comparisons")
        assert watch.errors == []
        page.goto(f"{service.url}{base}/")
        expect(page.locator("#connection")).to_have_text("connected")
        tokens.write_text(f"operate anna {OPERATOR}\n")
        service.publish(status(at=now()))
        expect(page.get_by_label("Token")).to_be_visible()
        page.get_by_label("Token").fill(OPERATOR)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        page.goto(f"{service.url}{base}/")
        expect(page.get_by_label("Token")).to_be_visible()
