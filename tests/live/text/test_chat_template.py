import pytest

from live.known_models import smollm2_file
from live.text.chat_template import ChatTemplate
from live.text.tokenizer import tokenizer_of_gguf
from live.weights.gguf_file import GgufFile
from simcore.core.errors import InputError

MESSAGES = [{"role": "user", "content": "Hello"}]


def test_the_template_of_smollm2() -> None:
    template = tokenizer_of_gguf(GgufFile(smollm2_file())).chat_template
    assert template is not None
    assert ChatTemplate(template).render(MESSAGES) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_what_published_templates_use() -> None:
    source = """{%- set ns = namespace(count=0) %}
{%- for message in messages[::-1] %}{% set ns.count = ns.count + 1 %}{% if loop.first %}{{ bos_token }}{% endif %}
{{- message.content.split('</think>')[-1].lstrip('\\n') | trim | replace('H', 'h') ~ ns.count }}{% break %}{% endfor %}
{%- macro said(text) %}[{{ text | tojson }}]{% endmacro %}{{ said({'a': 'é<'}) }}
{%- if add_generation_prompt %}{{ 'end' if messages | length > 0 else '' }}{% endif %}"""
    assert ChatTemplate(source).render(MESSAGES, bos_token="<s>") == '<s>hello1[{"a": "é<"}]end'


def growing(expression: str) -> str:
    """A text that becomes longer sixty times."""
    return f"{{% set ns = namespace(s='aa') %}}{{% for i in range(60) %}}{{% set ns.s = {expression} %}}{{% endfor %}}"


HOSTILE = {
    "power": "{{ 2 ** 10000000 }}",
    "repetition": "{{ 'a' * 10**9 }}",
    "long repetition": "{{ 'a' * 1000000000 }}",
    "doubling": growing("ns.s ~ ns.s"),
    "adding": growing("ns.s + ns.s"),
    "lists": "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "joining": growing("[ns.s, ns.s] | join"),
    "replacing": growing("ns.s.replace('a', ns.s)"),
    "blocks": "{% set a %}aaaaaaaaaaaaaaaa{% endset %}"
    + "".join("{% set a %}{{ a }}{{ a }}{{ a }}{{ a }}{% endset %}" for _ in range(30)),
    "padding": "{{ 'a'.ljust(10000000000) }}",
    "format": "{{ '{:10000000000}'.format(1) }}",
    "format by name": "{{ 'a'['format'](1) }}",
    "old format": "{{ '%10000000000d' % 1 }}",
    "counting": "{% for i in range(10**12) %}{% endfor %}",
    "nested counting": "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "endless text": "{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "function": "{{ namespace.__init__.__globals__ }}",
    "import": "{% import 'os' as os %}",
    "include": "{% include '/etc/passwd' %}",
    "changing": "{{ messages.append(1) }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "refusal": "{{ raise_exception('roles must alternate') }}",
    "missing": "{{ messages[0].nothing.more }}",
    "indent": "{{ messages | tojson(indent=1000000000) }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_are_refused_in_one_sentence(name: str) -> None:
    template = ChatTemplate(HOSTILE[name])
    with pytest.raises(InputError, match=r"^messages is .*, expected what the chat template takes \(") as refused:
        template.render(MESSAGES)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("source", ["{% for %}", "{{ 'a' | filesizeformat }}", "{{" + "(" * 5000, "a" * 200_001])
def test_what_is_no_template_is_refused(source: str) -> None:
    with pytest.raises(InputError, match=r"^chat_template is "):
        ChatTemplate(source)


def test_private_things_are_not_seen() -> None:
    for name in ("''.__class__", "range.__globals__", "messages.__class__", "messages[0].__init__"):
        try:
            shown = ChatTemplate(f"{{{{ {name} }}}}").render(MESSAGES)
        except InputError:
            continue
        assert shown == ""
