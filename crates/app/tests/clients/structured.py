"""Structured output as the frameworks ask for it by default, against a scripted model; and what else the SDK has of responses."""

import asyncio
import os
import warnings

import instructor
import openai
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

# LangChain serialises its own parsed object and warns about it, whatever the server sends.
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")

BASE = os.environ["POLIS_URL"] + "/v1"
KEY = os.environ["POLIS_TOKEN"]


class City(BaseModel):
    name: str
    people: int


BO = City(name="Bo", people=7)
client = openai.OpenAI(base_url=BASE, api_key=KEY)

# pydantic-ai: an output tool and tool_choice "required". The model first answers with text and is asked again.
model = OpenAIChatModel("polis", provider=OpenAIProvider(base_url=BASE, api_key=KEY))
agent = Agent(model, output_type=City)


async def pydantic_ai():
    first = await agent.run("which city?")
    assert first.output == BO, first.output
    second = await agent.run("and another?", message_history=first.all_messages())
    assert second.output == City(name="Li", people=8), second.output


asyncio.run(pydantic_ai())

# The same with a tool of the client before the output.
asked = []
with_tool = Agent(model, output_type=City)


@with_tool.tool_plain
def count(city: str) -> int:
    asked.append(city)
    return 7


assert asyncio.run(with_tool.run("how many people?")).output == BO
assert asked == ["Bo"], asked

# instructor: the function is named. Arguments that do not fit go back to the model as the result of its call.
patched = instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=KEY))
messages = [{"role": "user", "content": "a city, please"}]
city = patched.chat.completions.create(model="polis", messages=messages, response_model=City, max_retries=2)
assert city.model_dump() == BO.model_dump(), city

# LangChain: the function is named, or the format is a schema.
chat = ChatOpenAI(model="polis", base_url=BASE, api_key=KEY)
assert chat.with_structured_output(City, method="function_calling").invoke("city by function") == BO
assert chat.with_structured_output(City, method="json_schema").invoke("city by schema") == BO
streamed = list(chat.with_structured_output(City, method="json_schema").stream("city by schema, streamed"))
assert streamed[-1] == BO, streamed

# What the model does not keep is an error, whole and streamed; no text is handed over instead.
tools = [{"type": "function", "function": {"name": "fill", "parameters": {"type": "object"}}}]
question = [{"role": "user", "content": "talk instead"}]
once = client.with_options(max_retries=0)
try:
    once.chat.completions.create(model="polis", messages=question, tools=tools, tool_choice="required")
    raise AssertionError("text was taken for a call")
except openai.InternalServerError as error:
    assert error.code == "tool_choice_not_kept", error
schema = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": City.model_json_schema()}}
question = [{"role": "user", "content": "talk again"}]
try:
    stream = once.chat.completions.create(model="polis", messages=question, response_format=schema, stream=True)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    raise AssertionError(f"text was taken for the format: {said}")
except openai.APIError as error:
    assert error.code == "format_not_kept", error

# A background response is streamed, and its stream continued with the same numbers.
events = client.responses.create(model="polis", input="count slowly", background=True, stream=True)
first = [next(events) for _ in range(3)]
events.close()
response_id = first[0].response.id
rest = list(client.responses.retrieve(response_id, stream=True, starting_after=first[-1].sequence_number))
numbers = [event.sequence_number for event in [*first, *rest]]
assert numbers == list(range(len(numbers))), numbers
assert rest[-1].type == "response.completed" and rest[-1].response.output_text == "one two three"
assert client.responses.retrieve(response_id).output_text == "one two three"
items = client.responses.input_items.list(response_id)
assert items.data[0].content[0].text == "count slowly"
client.responses.delete(response_id)
try:
    client.responses.retrieve(response_id)
    raise AssertionError("it is still there")
except openai.NotFoundError:
    pass

# Conversations.
conversation = client.conversations.create(metadata={"title": "Cities"}, items=[{"role": "user", "content": "hello"}])
assert client.conversations.retrieve(conversation.id).metadata == {"title": "Cities"}
assert client.conversations.update(conversation.id, metadata={"title": "Towns"}).metadata == {"title": "Towns"}
answer = client.responses.create(model="polis", input="and now?", conversation=conversation.id)
assert answer.conversation.id == conversation.id and answer.output_text == "now"
assert client.conversations.delete(conversation.id).deleted
