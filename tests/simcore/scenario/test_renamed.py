import pytest

from simcore.core.errors import InputError
from simcore.scenario import parse_scenario
from simcore.scenario.renamed import RENAMED


def nested(path, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_key_is_answered_with_the_new_one(old, new):
    with pytest.raises(InputError) as caught:
        parse_scenario({"model": "llama-3.1-8b"} | nested(old, 1))
    assert old in str(caught.value)
    assert new in str(caught.value)
