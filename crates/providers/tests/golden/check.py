"""Checks the bodies in a folder against the types of the vendors' own SDKs.

Vendors without an SDK of their own are checked against OpenAI's, which they say they are compatible with; fields that only they
know must be in the list below.
"""

import importlib
import json
import pathlib
import sys
import typing

from pydantic import TypeAdapter

# The SDKs take iterables, which pydantic checks only as they are read, and not always without failing. A body has lists.
typing.Iterable = typing.List

# Fields of vendors whose SDK is OpenAI's or has no types, as they document them.
OWN_FIELDS = {
    "dashscope": {"enable_thinking", "thinking_budget"},
    "deepseek": {"thinking"},
    # Its SDK has no type for the field, without which others send no usage.
    "groq": {"stream_options"},
    "minimax": {"reasoning_split"},
    "moonshot": {"thinking"},
    "openrouter": {"reasoning"},
    "siliconflow": {"enable_thinking", "thinking_budget"},
    "zhipu": {"thinking"},
}

# Fields of a message that vendors send and want back although OpenAI has none of them.
ECHOED = {"reasoning_content", "reasoning_details"}

# Tools that OpenRouter runs itself, which OpenAI's types do not know.
OWN_TOOLS = {"openrouter": {"openrouter:web_search", "openrouter:web_fetch"}}

# The types of a request, by vendor or dialect.
TYPED_DICTS = {
    "OpenAiChat": ("openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming"),
    "OpenAiResponses": ("openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"),
    "Anthropic": ("anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
    "groq": ("groq.types.chat.completion_create_params", "CompletionCreateParams"),
    "cerebras": ("cerebras.cloud.sdk.types.chat.completion_create_params", "CompletionCreateParams"),
    "perplexity": ("perplexity.types.chat.completion_create_params", "CompletionCreateParamsStreaming"),
}


def check_typed_dict(path, body, own_fields):
    module, name = path
    kind = getattr(importlib.import_module(module), name)
    known = set()
    for base in getattr(kind, "__mro__", [kind]):
        known |= set(getattr(base, "__annotations__", {}))
    known |= set(getattr(kind, "__required_keys__", ())) | set(getattr(kind, "__optional_keys__", ()))
    unknown = set(body) - known - own_fields
    assert not unknown, f"unknown fields {sorted(unknown)}"
    TypeAdapter(kind).validate_python(body)


def check_gemini(body):
    from google.genai import types

    parts = {
        "systemInstruction": types.Content,
        "contents": list[types.Content],
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    unknown = set(body) - set(parts)
    assert not unknown, f"unknown fields {sorted(unknown)}"
    for name, value in body.items():
        TypeAdapter(parts[name]).validate_python(value)


def check_mistral(body):
    try:
        from mistralai.client.models import ChatCompletionStreamRequest as kind
    except ImportError:
        from mistralai.models import ChatCompletionStreamRequest as kind
    unknown = set(body) - set(kind.model_fields) - {field.alias for field in kind.model_fields.values()}
    assert not unknown, f"unknown fields {sorted(unknown)}"
    kept = kind.model_validate(body).model_dump(by_alias=True, exclude_unset=True, mode="json")
    check_kept(body["messages"], kept["messages"], "messages")


def check_kept(given, kept, place):
    """Fields that the types do not know are dropped by them, and refused by the vendor."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            assert name in kept, f"unknown field {place}.{name}"
            check_kept(value, kept[name], f"{place}.{name}")
    elif isinstance(given, list) and isinstance(kept, list):
        for number, (one, other) in enumerate(zip(given, kept)):
            check_kept(one, other, f"{place}[{number}]")


def check_ollama(body):
    from ollama._types import ChatRequest

    unknown = set(body) - set(ChatRequest.model_fields)
    assert not unknown, f"unknown fields {sorted(unknown)}"
    ChatRequest.model_validate(body)


def check_bedrock(body):
    import botocore.session
    from botocore.validate import ParamValidator

    operation = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("ConverseStream")
    report = ParamValidator().validate({"modelId": "m", **body}, operation.input_shape)
    assert not report.has_errors(), report.generate_report()


def check_vertex_anthropic(body):
    from anthropic._models import FinalRequestOptions
    from anthropic.lib.vertex._client import _prepare_options

    # The SDK takes the model out of the body and adds a version where there is none.
    options = FinalRequestOptions(method="post", url="/v1/messages", json_data={"model": "m", **body})
    sent = _prepare_options(options, project_id="p", region="global")
    assert sent.json_data == body, "the SDK would send another body"
    assert sent.url == "/projects/p/locations/global/publishers/anthropic/models/m:streamRawPredict", sent.url
    check_typed_dict(TYPED_DICTS["Anthropic"], {"model": "m", **body}, {"anthropic_version"})


def check(vendor, dialect, body):
    if dialect == "Bedrock":
        return check_bedrock(body)
    if dialect == "VertexAnthropic":
        return check_vertex_anthropic(body)
    if dialect == "Gemini":
        return check_gemini(body)
    if dialect == "Ollama":
        return check_ollama(body)
    if vendor == "mistral":
        return check_mistral(body)
    own_fields = OWN_FIELDS.get(vendor, set())
    own_tools = OWN_TOOLS.get(vendor, set())
    body = {**body, "tools": [tool for tool in body.get("tools", []) if tool.get("type") not in own_tools]}
    for message in body.get("messages", []):
        unknown = {name for name in message if name.startswith("reasoning")} - ECHOED
        assert not unknown, f"unknown fields of a message {sorted(unknown)}"
    check_typed_dict(TYPED_DICTS.get(vendor) or TYPED_DICTS[dialect], body, own_fields)


def main():
    folder, dialects = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    failed = False
    for vendor, dialect in dialects.items():
        body = json.loads((folder / f"{vendor}.json").read_text())
        try:
            check(vendor, dialect, body)
            print(f"ok {vendor}")
        except Exception as error:
            failed = True
            print(f"WRONG {vendor} ({dialect}): {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


main()
