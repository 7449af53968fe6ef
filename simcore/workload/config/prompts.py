"""What prompts begin with, as a user writes it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simcore.workload.config.lengths import FixedLength, Length, longest
from simcore.workload.config.section import Section

_MOST_DOCUMENTS = 64
_MOST_EXAMPLES = 1000
_MOST_TEXTS = 10**7

Exponent = Annotated[float, Field(ge=0, le=10)]
_ONE = FixedLength(name="fixed", tokens=1)


class UniqueTextPart(Section):
    """Tokens that no other request has."""

    name: Literal["unique"]
    tokens: Length
    """Distribution of the number of tokens."""


class _ChosenPart(Section):
    """What is chosen out of ``among`` by Zipf's law with exponent ``zipf``; by each tenant from its own, or not."""

    tokens: Length
    """Distribution of the length of a text or example. Each has one length."""
    among: Annotated[int, Field(ge=1, le=10**6)] = 1
    """Number of texts, or of templates, at most 1,000,000."""
    zipf: Exponent = 0.0
    """Popularity: the i-th is chosen in proportion to 1 / i^zipf. 0 is all alike."""
    per_tenant: bool = False
    """Whether each of ``tenants`` has its own."""


class SharedTextPart(_ChosenPart):
    """``count`` different texts, each of its own length: a system prompt, or documents that were retrieved."""

    name: Literal["shared"]
    count: Length = _ONE
    """Distribution of the number of texts in a prompt, at most 64. All differ."""

    @model_validator(mode="after")
    def _enough_texts(self) -> Self:
        most = longest(self.count)
        if most > min(self.among, _MOST_DOCUMENTS):
            raise ValueError(f"a count of at most {_MOST_DOCUMENTS}, and of the {self.among} texts, not {most}")
        return self


class ExamplesPart(_ChosenPart):
    """The first ``count`` examples of a template, each example of its own length."""

    name: Literal["few-shot"]
    count: Length
    """Distribution of the number of examples in a prompt, at most 1000."""

    @model_validator(mode="after")
    def _few_examples(self) -> Self:
        most = longest(self.count)
        if most > _MOST_EXAMPLES or most * self.among > _MOST_TEXTS:
            limits = f"at most {_MOST_EXAMPLES} examples a template and {_MOST_TEXTS} of all"
            raise ValueError(f"{limits}, not {most} of each of {self.among}")
        return self


PromptPart = Annotated[SharedTextPart | ExamplesPart | UniqueTextPart, Field(discriminator="name")]
