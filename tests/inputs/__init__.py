import pytest

pytest.importorskip("hypothesis", reason="generated cases, of the extra 'test'")
