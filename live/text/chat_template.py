"""Chat templates: small programs that come with a model, and are trusted no more than its other data."""

from collections.abc import Mapping, Sequence

from live.text.sandbox import LONGEST_TEXT, RefusedError, Sandbox
from simcore.core.errors import InputError, Phrase

_LONGEST_TEMPLATE = 200_000


class ChatTemplate:
    """A compiled template; ``render`` makes the prompt of a conversation.

    Raises ``InputError`` for a template that is too long or cannot be parsed.
    """

    def __init__(self, source: str) -> None:
        if len(source) > _LONGEST_TEMPLATE:
            raise InputError("chat_template", Phrase(f"{len(source)} characters long"), f"at most {_LONGEST_TEMPLATE}")
        self._sandbox = Sandbox()
        try:
            self._template = self._sandbox.from_string(source)
        except Exception as error:  # a hostile one can make parser and compiler fail in many ways
            raise InputError("chat_template", source, f"a Jinja template ({str(error)[:200]})") from None

    def render(
        self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True, **variables: str
    ) -> str:
        """The prompt that leads to an answer to ``messages``, each with a role and content.

        ``variables`` are texts that templates may name, as ``bos_token``. Raises ``InputError`` where the template
        refuses the messages, fails, or makes a prompt without end.
        """
        given = [dict(message) for message in messages]
        parts, length = [], 0
        self._sandbox.begin()
        try:
            for part in self._template.generate(
                messages=given, add_generation_prompt=add_generation_prompt, **variables
            ):
                length += len(part)
                if length > LONGEST_TEXT:
                    raise RefusedError(f"its prompt is longer than {LONGEST_TEXT} characters")
                parts.append(part)
        except RefusedError as error:
            raise InputError("messages", given, f"what the chat template takes ({error})") from None
        except Exception as error:  # a template may fail in any way, as any program may
            what = f"{type(error).__name__}: {error}"[:200]
            raise InputError("messages", given, f"what the chat template takes ({what})") from None
        return "".join(parts)
