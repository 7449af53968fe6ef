"""Errors say one sentence each, also after a journey through pickle or a simulation process."""

import copy
import pickle

import pytest
from simpy import Environment

from simcore.core.errors import FileError, InputError, Phrase, UnknownNameError, nearest_name

ERRORS = (
    InputError("workload.requests", -3, "a whole number of at least 1"),
    InputError("a", "sjff", "one of sjf", "sjf"),
    UnknownNameError("model", "lama", ("llama", "opt")),
    FileError("trace.csv", "is empty"),
    FileError("trace.csv", "is broken", 7),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("carry", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_being_copied(error, carry):
    carried = carry(error)
    assert type(carried) is type(error)
    assert str(carried) == str(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_keep_their_sentence_when_raised_in_a_process(error):
    def failing(environment):
        yield environment.timeout(1)
        raise error

    environment = Environment()
    environment.process(failing(environment))
    with pytest.raises(type(error)) as caught:
        environment.run()
    assert str(caught.value) == str(error)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "empty"),
        (True, "true"),
        ("", "''"),
        ("modèle", "'modèle'"),
        (float("nan"), "nan"),
        (Phrase("missing"), "missing"),
        ("x" * 100, "'" + "x" * 79 + "..."),
        pytest.param(10**5000, "a number beyond all bounds", id="many digits"),
    ],
)
def test_values_are_shown_as_a_scenario_has_them(value, shown):
    assert str(InputError("field", value, "another")) == f"field is {shown}, expected another."


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("a100", "a100-sxm"),
        ("H100", "h100-sxm"),
        ("a10", "a10g"),
        ("hh100-sxm", "h100-sxm"),
        ("A100_S", "a100-sxm"),
        ("h100p", "h100-pcie"),
        ("", None),
        ("-", None),
        ("b1", "b101"),
        ("tpu", None),
        ("a", None),
        ("blackwell", None),
        ("100", "h100-sxm"),
        ("pcie", "h100-pcie"),
    ],
)
def test_the_nearest_name_is_one_that_goes_on_or_else_one_that_looks_alike(name, nearest):
    assert nearest_name(name, ["a10g", "a100-sxm", "b100", "b101", "h100-sxm", "h100-pcie"]) == nearest


def test_nothing_of_a_value_beyond_its_beginning_is_turned_into_text():
    class Counted(str):
        made = 0

        def __repr__(self) -> str:
            Counted.made += 1
            return "x"

    values = [[Counted("x")] * 1000] * 1000
    assert len(str(InputError("field" * 100_000, values, "less"))) < 1000
    assert Counted.made <= 80 * 80


def test_what_a_terminal_would_obey_is_escaped():
    assert str(InputError("a\x1b[31m", "\x1b]0;T\x07", "b\u202e")).isprintable()
