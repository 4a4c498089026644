"""The house is in order: one list of dependencies, one style, a short README."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.committed import committed

from utils.ground.paths import ROOT

SCRIPTS = Path(sysconfig.get_path("scripts"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
# One conda requirement: a name, then perhaps a version.
VERSION = r"([<>]=?|[=!]?=)?[0-9][0-9.*]*"
MATCH_SPEC = re.compile(rf"^[a-z0-9_.-]+( +{VERSION}(,{VERSION})*)?$")


def run(program: str, *arguments: str) -> str:
    """What a program in the environment complains about; "" where it is content."""
    done = subprocess.run(
        [str(SCRIPTS / program), *arguments], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout + done.stderr if done.returncode else ""


def required() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    return [Requirement(line) for line in [*PROJECT["dependencies"], *extras["dev"]]]


def test_conda_lists_no_python_package_of_its_own():
    (pip,) = (entry["pip"] for entry in CONDA if isinstance(entry, dict))
    assert pip == ["-c constraints.txt", "-e .[dev]"]
    names = {line.split()[0] for line in CONDA if isinstance(line, str)}
    python = {canonicalize_name(requirement.name) for requirement in required()}
    assert not names & (python | {"pytorch"})
    assert {"python", "pip", "make", "cxx-compiler", "cuda-nvcc", "cuda-version"} <= names


def test_conda_lines_are_well_formed():
    lines = [line for line in CONDA if isinstance(line, str)]
    assert [line for line in lines if not MATCH_SPEC.match(line)] == []
    (python,) = (line for line in lines if line.startswith("python "))
    assert PROJECT["requires-python"] in python


def test_every_dependency_has_a_tested_version_that_fits():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    for requirement in required():
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def test_the_readme_is_short_and_has_its_parts():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert "<!-- results -->" in text and "<!-- /results -->" in text
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_contributors_find_every_test():
    """The map of CONTRIBUTING.md names each test file once, and none that is gone."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| ([\w/ ]+) \|$", text, re.MULTILINE)
    named = sorted(name for row in rows if row != "tests" for name in row.split())
    files = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
    assert named == sorted(
        file.stem[5:] if file.parent == Path(".") else f"d/{file.stem[5:]}" for file in files
    )


def test_ruff_has_nothing_to_say():
    assert run("ruff", "check", "--quiet", "--no-cache", ".") == ""


def test_what_is_public_in_utils_needs_a_docstring():
    text = '"""A module."""\n\n\ndef f():\n    pass\n\n\nclass C:\n    def m(self):\n        pass\n'
    command = [SCRIPTS / "ruff", "check", "--output-format=concise", "--no-cache", "-"]
    command += ["--stdin-filename", "utils/fresh.py"]
    said = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True).stdout
    assert re.findall(r"D\d+", said) == ["D103", "D101", "D102"]


def test_python_is_formatted():
    assert run("ruff", "format", "--check", "--no-cache", ".") == ""


def test_cuda_and_cpp_are_formatted():
    folders = ("kernels", "solutions", "utils/emulator")
    endings = ("cu", "cuh", "h", "hpp", "cpp")
    files = committed(*(f"{folder}/*.{ending}" for folder in folders for ending in endings))
    assert files, "there is something to format"
    assert run("clang-format", "--dry-run", "-Werror", *files) == ""


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    assert "make test" in script.read_text()


def test_importing_utils_is_cheap():
    code = "import sys, utils; print(sorted({'torch', 'numpy', 'IPython'} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"


def test_notebooks_import_at_most_six_names():
    import utils

    extras = {"hint", "reset", "profile"}  # by %load_ext
    assert 1 <= len(set(utils.__all__) - extras) <= 6
    assert [name for name in utils.__all__ if not callable(getattr(utils, name))] == ["device"]


def test_no_path_of_somebodys_machine_is_in_the_project():
    home = re.compile(r"/(?:home|root|Users|work)/\w+")
    lines = []
    for name in committed():
        text = (ROOT / name).read_text(errors="ignore")
        lines += [f"{name}: {match[0]}" for match in home.finditer(text)]
    assert [line for line in lines if not line.startswith("tests/test_house.py")] == []


def test_every_picture_of_an_executed_notebook_is_seen_without_trust():
    """JupyterLab shows no SVG of a notebook that was executed elsewhere; so a PNG is with it."""
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        shown = [output["data"] for output in outputs if "data" in output]
        assert outputs and (shown or path.stem == "13_capstone"), path.name  # that one only prints
        assert not [data for data in shown if "<IPython" in str(data["text/plain"])]
        assert all("image/png" in data for data in shown if "image/svg+xml" in data), path.name
