"""Prefill and decode take turns: steps of prompts go before steps of decodes, as in SGLang's scheduler."""
