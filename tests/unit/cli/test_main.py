"""What the command line says about a wrong use of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.cli.main import main

FILE = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: totl\n"


def complaint(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: str) -> str:
    """What goes to standard error; nothing goes to standard output; the exit code is 2."""
    monkeypatch.setattr("sys.argv", ["twinstream", *arguments.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    return err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("chek", "Unknown command 'chek'. Did you mean 'check'?"),
        ("diverg x", "Unknown command 'diverg'. Did you mean 'divergences'?"),
        ("compare x", "Unknown command 'compare'. Commands are calibrate, check, divergences, "),
        ("--version", "Unknown option '--version'. Did you mean 'version'?"),
        ("check --refrence x", "Unknown option '--refrence'. Did you mean '--reference'?"),
        ("gate x --min 5", "Unknown option '--min'. Did you mean '--min-matched'?"),
        ("lint x --redis y", "Unknown option '--redis'.\n"),
        ("lint x -j", "Unknown option '-j'. Did you mean '--json'?"),
        ("move x --to service --checkpoint y --results z --shards 3", "--shards is for --to spark"),
    ],
)
def test_an_option_that_is_unknown_or_of_no_use_is_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: str, told: str
) -> None:
    assert f"\n\ntwinstream: {told}" in complaint(capsys, monkeypatch, arguments)


@pytest.mark.parametrize(
    "arguments", ["lint none.yaml", "lint", "gate x --wait soon", "lint spec.yaml", "gate \udcff"]
)
def test_every_error_begins_alike(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: str,
) -> None:
    (tmp_path / "spec.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    told = complaint(capsys, monkeypatch, arguments)
    assert told.splitlines()[-1].startswith("twinstream: ")
    assert "Error:" not in told


@pytest.mark.parametrize(
    "command",
    ["gate {} --wait 1h", "status {}", "divergences {}", "divergences {} --by field", "report {}",
     "reset {} --reason x", "explain {} --comparison rides", "explain x --comparison {}",
     "replay --spec spec.yaml --name {}"],
)  # fmt: skip
def test_what_is_no_name_is_a_mistake_of_the_user(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    (tmp_path / "spec.yaml").write_text(FILE.replace("totl", "total"))
    monkeypatch.chdir(tmp_path)
    told = complaint(capsys, monkeypatch, command.format("rides/gate#"))
    assert told == "twinstream: 'rides/gate#' cannot be the name of a comparison or the ID of a divergence\n"


def test_a_fault_of_the_program_has_an_exit_code_that_says_nothing_of_the_outputs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise RuntimeError

    monkeypatch.setattr("twinstream.cli.main.installed_version", lambda _: fail())
    monkeypatch.setattr("sys.argv", ["twinstream", "version"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 70
    assert "in fail" in told, "the stack trace for the report"
    assert told.splitlines()[-1] == (
        "twinstream: this is a fault of twinstream, and says nothing of the outputs: RuntimeError"
    )


def test_each_fault_of_a_file_has_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(f"{FILE}shw: [a]\n")
    monkeypatch.chdir(tmp_path)
    places = [line.split("`")[0] for line in complaint(capsys, monkeypatch, "lint spec.yaml").splitlines()]
    assert places == ["twinstream: spec.yaml:5: ", "twinstream: spec.yaml:6: "]
