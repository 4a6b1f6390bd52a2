"""Description, workflows, conda recipe and citation of a release agree with pyproject.toml."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import skbayes_sgld

yaml = pytest.importorskip("yaml", reason="needs the extra 'test'")
markdown = pytest.importorskip("readme_renderer.markdown", reason="needs the extra 'test'")

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
WORKFLOWS = ROOT / ".github" / "workflows"
PYTHONS = ["3.11", "3.12", "3.13"]


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def load_module(path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


release = load_module(ROOT / ".ci" / "release.py")


# ---- the description ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def description():
    """README.md with the substitutions of the build."""
    hook = SETTINGS["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for substitution in hook["substitutions"]:
        replacement = substitution["replacement"].replace("$HFPR_VERSION", skbayes_sgld.__version__)
        text = re.sub(substitution["pattern"], replacement, text)
    return text


def test_the_description_renders_and_every_link_leads_to_a_file_of_the_release(description):
    page = markdown.render(description)
    assert page.count("<table>") == description.count("\n|---")
    source = f"{PROJECT['urls']['Source']}/"
    links = [link for link in re.findall(r'(?:href|src)="([^"]*)"', page) if link[:1] not in "#"]
    ours = [link for link in links if link.startswith(source)]
    assert sum(f"{source}raw/" in link for link in ours) == page.count("<img") > 0
    assert len(ours) > 10
    for link in links:
        assert urlsplit(link).scheme == "https", link
    for link in ours:
        _, version, path = link.removeprefix(source).split("/", 2)
        assert version == f"v{skbayes_sgld.__version__}"
        assert (ROOT / urlsplit(path).path).exists(), link


def test_the_account_is_named_in_pyproject_alone():
    owner = urlsplit(PROJECT["urls"]["Source"]).path.split("/")[1]
    assert all(owner in link for link in PROJECT["urls"].values())
    others = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("recipe/*")]
    others += [ROOT / "CITATION.cff", *ROOT.glob(".github/**/*.*")]
    address = re.compile(rf"//(github\.com/)?{owner}\b")
    assert [path for path in others if address.search(path.read_text(encoding="utf-8"))] == []


def test_keywords_name_every_family():
    """Description, keywords and citation; SGLDNegativeBinomialRegressor is "negative binomial"."""
    pattern = r"SGLD(\w+?)(?:Regression|Regressor|Classifier)"
    names = [re.fullmatch(pattern, name) for name in skbayes_sgld.linear_model.__all__]
    found = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name[1]).lower() for name in names if name]
    assert {"linear", "negative binomial", "ordinal"} <= set(found)
    keywords = {keyword.replace("-", " ") for keyword in PROJECT["keywords"]}
    assert {f"{family} regression" for family in found} <= keywords
    cited = read_yaml("CITATION.cff")
    for text in (PROJECT["description"], cited["title"]):
        plain = text.lower().replace("-", " ")
        missing = {name for name in found if name not in plain} - {"linear"}
        assert not missing, text
    assert cited["keywords"] == PROJECT["keywords"]
    assert cited["version"] == skbayes_sgld.__version__
    assert cited["license"] == PROJECT["license"]


# ---- the release ----------------------------------------------------------------------------


@pytest.fixture
def ready(tmp_path):
    """Files of a clone that can be released, as in this one."""
    for name in ("skbayes_sgld/__init__.py", "pyproject.toml", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version, date = skbayes_sgld.__version__, read_yaml("CITATION.cff")["date-released"]
    replace(tmp_path / "pyproject.toml", "OWNER", "somebody")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {version} ({date})\n")
    return tmp_path


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_clone_that_is_ready_can_be_released(ready):
    assert release.reasons(ready, f"v{skbayes_sgld.__version__}") == []


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("pyproject.toml", "somebody", "OWNER", "in place of every OWNER"),
        ("skbayes_sgld/__init__.py", skbayes_sgld.__version__, "9.0", "tag v9.0"),
        ("CITATION.cff", f"version: {skbayes_sgld.__version__}", "version: 9", "version is 9,"),
        ("CHANGELOG.md", "## ", "## Unreleased ", "no heading"),
    ],
)
def test_a_clone_that_is_not_ready_is_refused(name, old, new, reason, ready):
    replace(ready / name, old, new)
    found = release.reasons(ready, f"v{skbayes_sgld.__version__}")
    assert any(reason in sentence for sentence in found)


def test_a_tag_of_another_version_is_refused(ready):
    assert "The tag is v9.0" in release.reasons(ready, "v9.0")[0]


def test_the_release_is_checked_before_it_is_built_and_published():
    jobs = read_yaml(WORKFLOWS / "release.yml")["jobs"]
    commands = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert commands == ['python .ci/release.py "$GITHUB_REF_NAME"', ".ci/package dist"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}  # no password
    assert all("run" not in step for step in jobs["publish"]["steps"])


# ---- workflows ----------------------------------------------------------------------------


def test_every_admitted_python_is_tested_on_every_system():
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"]]
    assert [name for name in declared if re.fullmatch(r"3\.\d+", name)] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    jobs = read_yaml(WORKFLOWS / "ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS
    platform = jobs["platform"]["strategy"]["matrix"]
    assert platform == {"os": ["macos-latest", "windows-latest"], "python": PYTHONS}
    for job in jobs.values():
        for leg in job.get("strategy", {}).get("matrix", {}).get("include", []):
            assert leg["python"] in PYTHONS
    free = jobs["free-threaded"]
    assert free["continue-on-error"]
    assert all(name.endswith("t") for name in free["strategy"]["matrix"]["python"])


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_runs_what_there_is_and_may_only_read(path):
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for job in workflow["jobs"].values():
        legs = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            for leg in legs:
                command = step.get("run", "").replace("${{ matrix.leg }}", leg.get("leg", ""))
                for script in re.findall(r"\.ci/\S+", command):
                    assert (ROOT / script).is_file()
                assert set(re.findall(r"\bmake (\S+)", command)) <= targets


# ---- the conda recipe -----------------------------------------------------------------------


def requirements(entries):
    """``{name: versions}`` of requirements of pip or conda."""
    return dict(re.fullmatch(r"([\w-]+) ?(.*)", entry).groups() for entry in entries)


def test_the_conda_recipe_asks_for_what_pyproject_asks_for():
    recipe = read_yaml("recipe/recipe.yaml")
    asked = recipe["requirements"]
    run = {"python": PROJECT["requires-python"], **requirements(PROJECT["dependencies"])}
    assert requirements(asked["run"]) == run
    host = {
        "python": f"{PYTHONS[0]}.*",
        "pip": "",
        **requirements(SETTINGS["build-system"]["requires"]),
    }
    assert requirements(asked["host"]) == host
    assert recipe["context"]["version"] == skbayes_sgld.__version__
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["license"] == PROJECT["license"]
    sdist = PROJECT["name"].replace("-", "_")
    assert recipe["source"]["path"] == f"../dist/{sdist}-${{{{ version }}}}.tar.gz"
