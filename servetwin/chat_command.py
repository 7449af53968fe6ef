"""``servetwin chat``: talk with a model through the live engine."""

import sys
from typing import Annotated

import typer

from servetwin.live_options import Device, Dtype, Threads, settings_of
from simcore.core.errors import InputError

_PROMPT = "> "


def chat(
    model: Annotated[
        str, typer.Argument(metavar="[MODEL]", help="A checkpoint folder or a .gguf file; SmolLM2-135M by default.")
    ] = "smollm2-135m",
    device: Device = "cpu",
    dtype: Dtype = None,
    threads: Threads = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="What the model is told before anything.")] = None,
    temperature: Annotated[float, typer.Option(metavar="T", help="0 always takes the likeliest token.")] = 0.7,
    top_p: Annotated[float, typer.Option(metavar="P", help="Draw among the likeliest of this probability.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Equal seeds give equal answers.")] = 0,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The longest answer.")] = 512,
) -> None:
    """Talk with a model in the terminal, through the live engine.

    Answers come token by token. Ctrl-D ends the talk, Ctrl-C an answer.

    Each turn goes through the live engine with its prefix cache, so that only what is new is computed.
    """
    from live.engine.engine import Engine
    from live.engine.weights_choice import choose_weights, tokenizer_of
    from live.sampling.parameters import SamplingParameters
    from live.text.chat_template import ChatTemplate

    settings = settings_of(device, dtype, threads)
    sampling = SamplingParameters(temperature=temperature, top_p=top_p, seed=seed)
    weights = choose_weights(model, None, settings)
    tokenizer = tokenizer_of(weights, model)
    if tokenizer is None or tokenizer.chat_template is None:
        raise InputError("MODEL", model, "one that comes with a tokenizer and a chat template")
    template, begin = ChatTemplate(tokenizer.chat_template), tokenizer.special(tokenizer.begin_token)
    messages = [] if system is None else [{"role": "system", "content": system}]
    with Engine(weights, tokenizer=tokenizer, settings=settings) as engine:
        while (said := _line()) is not None:
            messages.append({"role": "user", "content": said})
            prompt = template.render(messages, bos_token=begin)
            under_way = engine.submit(prompt, sampling, max_tokens=max_tokens)
            try:
                for piece in under_way:
                    typer.echo(piece.text, nl=False)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                under_way.cancel()
                under_way.wait()
            (output,) = under_way.outputs
            typer.echo("" if output.finish_reason in ("stop", "length") else f" [{output.finish_reason}]")
            messages.append({"role": "assistant", "content": output.text})


def _line() -> str | None:
    """What a user says next, None at the end."""
    while True:
        try:
            said = input(_PROMPT if sys.stdin.isatty() else "")
        except EOFError:
            return None
        if said.strip():
            return said
