"""A validation error becomes one sentence: field, value, what was expected, nearest name."""

from enum import Enum
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from simcore.core.errors import InputError, UnknownNameError
from simcore.core.validation import explain


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Mode(Enum):
    RECOMPUTE = "recompute"
    SWAP = "swap"


class ClassMean(Strict):
    name: Literal["class-mean"]
    weight: float = Field(default=1.0, gt=0)


class Oracle(Strict):
    name: Literal["oracle"]


class Fcfs(Strict):
    name: Literal["fcfs"]


class Sjf(Strict):
    name: Literal["sjf"]
    predictor: Annotated[ClassMean | Oracle, Field(discriminator="name")]


class Fixed(Strict):
    tokens: int = Field(ge=1, le=100)


class Scenario(Strict):
    replicas: int = Field(ge=1)
    rate: float = Field(default=1.0, gt=0)
    kind: Literal["conv", "code"] = "conv"
    mode: Mode = Field(default=Mode.SWAP, strict=False)
    ordering: Annotated[Fcfs | Sjf, Field(discriminator="name")] | None = None
    stages: list[Annotated[Fcfs | Sjf, Field(discriminator="name")]] = []
    length: int | Fixed = 1
    peak: dict[Literal["fp16", "bf16"], Annotated[float, Field(gt=0)]] = {}
    window: Fixed | None = None
    page: int = 16
    label: str = Field(default="", alias="title", pattern="^[a-z]*$")

    @field_validator("page")
    @classmethod
    def power_of_two(cls, page: int) -> int:
        if page.bit_count() != 1:
            raise ValueError("a power of two")
        return page

    @model_validator(mode="after")
    def whole(self) -> "Scenario":
        return self


def sentence(document: Any, model: type[BaseModel] = Scenario, prefix: str = "") -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(document)
    return str(explain(caught.value, model, prefix))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"replicas": 0}, "replicas is 0, expected a whole number of at least 1."),
        ({"replicas": "two"}, "replicas is 'two', expected a whole number of at least 1."),
        ({"replicas": 1.5}, "replicas is 1.5, expected a whole number of at least 1."),
        ({"replicas": True}, "replicas is true, expected a whole number of at least 1."),
        ({"rate": -0.5}, "rate is -0.5, expected a number greater than 0."),
        ({"rate": float("nan")}, "rate is nan, expected a finite number."),
        ({"rate": [1]}, "rate is [1], expected a number greater than 0."),
        ({"rate": ["x"] * 50}, "rate is a list, expected a number greater than 0."),
        ({"rate": None}, "rate is empty, expected a number greater than 0."),
        ({"kind": "cod"}, "kind is 'cod', expected one of code, conv. Did you mean 'code'?"),
        ({"kind": 3}, "kind is 3, expected one of code, conv."),
        ({"mode": "swop"}, "mode is 'swop', expected one of recompute, swap. Did you mean 'swap'?"),
        ({"page": 12}, "page is 12, expected a power of two."),
        ({"title": "A"}, "title is 'A', expected String to match pattern '^[a-z]*$'."),
        (
            {"window": {}},
            "window.tokens is missing, expected a whole number of at least 1 and of at most 100.",
        ),
        ({"window": 8}, "window is 8, expected a mapping of tokens."),
        ({"stages": {}}, "stages is a mapping, expected a list."),
        ({"peak": 3}, "peak is 3, expected a mapping of fp16, bf16."),
        ({"peak": {"bf16": 0.0}}, "peak.bf16 is 0.0, expected a number greater than 0."),
    ],
)
def test_wrong_values(change: dict[str, Any], expected: str) -> None:
    assert sentence({"replicas": 1} | change) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"window": {"token": 3}},
            "window.token is an unknown field, expected one of tokens. Did you mean 'tokens'?",
        ),
        (
            {"peak": {"bf_16": 1.0}},
            "peak.bf_16 is an unknown field, expected one of bf16, fp16. Did you mean 'bf16'?",
        ),
        (
            {"stages": [{"name": "fcfs"}, {"name": "fcfs", "qqq": 1}]},
            "stages.1.qqq is an unknown field, expected one of name.",
        ),
        (
            {"ordering": {"name": "sjf", "predictor": {"name": "class-mean", "wieght": 2.0}}},
            "ordering.predictor.wieght is an unknown field, expected one of name, weight. Did you mean 'weight'?",
        ),
    ],
)
def test_unknown_fields_get_the_nearest_name_at_their_level(change: dict[str, Any], expected: str) -> None:
    assert sentence({"replicas": 1} | change) == expected


def test_unknown_field_goes_before_the_missing_one_it_misspells() -> None:
    assert sentence({"replica": 1}).startswith("replica is an unknown field")
    assert sentence({"replica": 1}).endswith("Did you mean 'replicas'?")


def test_aliases_are_the_names_that_users_are_told() -> None:
    assert sentence({"replicas": 1, "titel": "x"}).endswith("Did you mean 'title'?")
    assert "label" not in sentence({"replicas": 1, "qqqqq": "x"})


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ({"name": "sjff"}, "ordering.name is 'sjff', expected one of fcfs, sjf. Did you mean 'sjf'?"),
        ({"name": 7}, "ordering.name is '7', expected one of fcfs, sjf."),
        ({}, "ordering.name is missing, expected one of fcfs, sjf."),
        ("fcfs", "ordering is 'fcfs', expected a mapping whose name is one of fcfs, sjf."),
        (
            {"name": "sjf"},
            "ordering.predictor is missing, expected a mapping whose name is one of class-mean, oracle.",
        ),
        (
            {"name": "sjf", "predictor": {"name": "class-mean", "weight": 0}},
            "ordering.predictor.weight is 0, expected a number greater than 0.",
        ),
    ],
)
def test_tagged_unions_hide_their_tags_in_paths(ordering: Any, expected: str) -> None:
    assert sentence({"replicas": 1, "ordering": ordering}) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("x", "length is 'x', expected a whole number or a mapping of tokens."),
        ({"tokens": 101}, "length.tokens is 101, expected a whole number of at least 1 and of at most 100."),
        ({"tokns": 1}, "length.tokns is an unknown field, expected one of tokens. Did you mean 'tokens'?"),
    ],
)
def test_plain_unions_report_the_deepest_problem(length: Any, expected: str) -> None:
    assert sentence({"replicas": 1, "length": length}) == expected


def test_prefix_stands_in_front_as_it_is() -> None:
    assert sentence({"replicas": 0}, prefix="a.yaml: x.").startswith("a.yaml: x.replicas is 0")
    assert sentence([1], prefix="a.yaml: ").startswith("a.yaml: the input is [1], expected a mapping of replicas")


def test_names_raise_the_unknown_name_error() -> None:
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate({"replicas": 1, "ordering": {"name": "sjff"}})
    problem = explain(caught.value, Scenario)
    assert isinstance(problem, UnknownNameError)
    assert (problem.field, problem.value, problem.nearest) == ("ordering.name", "sjff", "sjf")


def test_recursive_models_are_walked() -> None:
    class Tree(Strict):
        size: int = Field(default=1, ge=1)
        left: "Tree | None" = None

    assert sentence({"left": {"left": {"size": 0}}}, Tree).startswith("left.left.size is 0")
    assert sentence({"left": {"left": {"siz": 0}}}, Tree).endswith("Did you mean 'size'?")


@pydantic.dataclasses.dataclass(config=ConfigDict(extra="forbid"))
class Point:
    x: int
    shape: Annotated[Fcfs | Sjf, Field(discriminator="name")] | None = None


class Beyond(Strict):
    """Parts that ``explain`` does not look into."""

    point: Point | None = None
    empty: "Empty | None" = None
    shares: dict[Annotated[str, Field(pattern="^[a-z]+$")], float] = {}
    names: Annotated[list[str], Field(min_length=1)] = ["a"]
    pair: Annotated[list[int], Field(min_length=2)] = [1, 2]


class Empty(Strict):
    pass


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"point": {"x": "a"}}, "point.x is 'a', expected a valid integer"),
        ({"point": {"x": 1, "y": 2}}, "point.y is"),
        ({"point": {"x": 1, "shape": {"name": "sjff"}}}, "point.shape is a mapping, expected"),
        ({"empty": {"y": 2}}, "empty.y is an unknown field, expected no such field."),
        ({"shares": {"A": 1.0}}, "shares.A is the key 'A', expected String to match pattern"),
        ({"shares": {5: 1.0}}, "shares.5 is the key 5, expected text."),
        ({"names": []}, "names is [], expected a list that is not empty."),
        ({"pair": [1]}, "pair is [1], expected at least 2 items."),
    ],
)
def test_what_is_not_understood_still_gets_a_sentence(document: dict[str, Any], expected: str) -> None:
    assert sentence(document, Beyond).startswith(expected)


class Routed(Strict):
    routing: Literal["balanced", "power-law"] | list[float] = "balanced"


def test_names_of_which_a_list_may_stand_instead_are_named() -> None:
    assert sentence({"routing": "power"}, Routed) == (
        "routing is 'power', expected one of balanced, power-law. Did you mean 'power-law'?"
    )


def test_every_problem_is_an_input_error() -> None:
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate({})
    assert isinstance(explain(caught.value, Scenario), InputError)
