"""The breakages of ``tests/maintainer/mutation`` can be made: every place and line is there."""

from tests.maintainer.mutation.mutants import (
    NUMBER,
    OTHER_PLACES,
    OTHERS,
    PACKAGE,
    PLACES,
    ROOT,
    sample_mutants,
)


def test_every_place_is_there():
    missing = [place for place in (*PLACES, *OTHER_PLACES) if not (ROOT / PACKAGE / place).exists()]
    assert not missing


def test_every_mutant_changes_its_file_and_leaves_python():
    mutants = sample_mutants()
    assert len({mutant.key for mutant in mutants}) == NUMBER + OTHERS
    for mutant in mutants:
        text = (ROOT / mutant.path).read_text()
        changed = mutant.source(text)
        assert changed != text, mutant.key
        compile(changed, mutant.path, "exec")
