"""A version is text, and its first characters are enough where they are unique."""

import json

import pytest

from tiled_attention.results.folders import find

ODD_VERSIONS = ["695e0514", "123e456", "00123", "1_000", "1e-3", "12:30"]


@pytest.mark.parametrize("version", ODD_VERSIONS)
def test_versions_are_text(put, run, version: str) -> None:
    results = {other: put(other) for other in ODD_VERSIONS}
    folder = results[version].folder
    assert json.loads((folder / "provenance.json").read_text())["version"] == version
    assert run("show", version).splitlines()[0].endswith(version)
    assert [row.split()[3] for row in run("list").splitlines()[1:]] == sorted(ODD_VERSIONS)
    compared = run("diff", version, f"local/cpu_timing/{version}").splitlines()
    assert [line.split()[1] for line in compared[:2]] == [f"local/cpu_timing/{version}"] * 2
    assert run("prune", "--yes").count("kB\n") == len(ODD_VERSIONS)
    assert not folder.exists()


def test_the_first_characters_are_enough(put) -> None:
    put("aaaa1111")
    put("aaaa1111bbbb")
    put("aaaa2222", platform="named")
    assert find("aaaa2").version == "aaaa2222"
    assert find("aaaa1111").version == "aaaa1111"  # whole, though another starts with it
    assert find("named/aaaa").version == "aaaa2222"
    assert find("cpu_timing/aaaa2").platform == "named"
    assert find("results/named/cpu_timing/aaaa2222/").version == "aaaa2222"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("aaa", "'aaa': give at least 4 characters of a version"),
        ("", "'': give at least 4 characters of a version"),
        ("local/aa", "'local/aa': give at least 4 characters of a version"),
        ("aaaa", "'aaaa' is ambiguous: local/cpu_timing/aaaa1111, named/crossover/aaaa1111"),
        ("aaaa1111", "is ambiguous: local/cpu_timing/aaaa1111, named/crossover/aaaa1111"),
        ("aaaa2", "'aaaa2': no such version; the nearest: local/cpu_timing/aaaa1111, "),
        ("other/aaaa", "no such version; the nearest: local/cpu_timing/aaaa1111, "),
        ("AAAA", "no such version; the nearest: "),
        ("*111", "no such version; the nearest: "),
        ("../x/aaaa", "no such version; the nearest: "),
    ],
)
def test_what_is_not_found_is_said_with_candidates(put, run, asked: str, said: str) -> None:
    put("aaaa1111", platform="named", step="crossover")
    put("aaaa1111")
    put("7777", step="crossover")
    message = run("show", asked, code=2)
    assert said in message
    assert message == run("diff", "7777", asked, code=2)


def test_nothing_is_found_where_nothing_is(run) -> None:
    assert run("show", "aaaa", code=2) == "error: 'aaaa': no such version; there are no results\n"
