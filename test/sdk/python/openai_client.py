"""Does with the official OpenAI client what the sample server can do and prints what it saw as one JSON object.

Usage: openai_client.py BASE, with the base URL of the API.
"""

import json
import sys
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0)


def chat(text, model="parrot", **options):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **options)


def stream():
    """The words, and the seconds from the first to the last."""
    words, times = [], []
    for chunk in chat("one two three", stream=True, extra_body={"seconds": 0.5}):
        if word := chunk.choices[0].delta.content:
            words.append(word)
            times.append(time.monotonic())
    return words, times[-1] - times[0]


def failure(call):
    try:
        return {"answer": call()}
    except openai.APIStatusError as error:
        return {"status": error.status_code, "message": error.body["message"]}


words, seconds = stream()
unknown = chat("hello", model="crow")  # an error object of the worker comes back as an answer
leaving = chat("one two three", stream=True, extra_body={"seconds": 30})
next(iter(leaving))
leaving.close()
print(
    json.dumps(
        {
            "models": [model.id for model in client.models.list()],
            "chat": chat("hello parrot").choices[0].message.content,
            "words": words,
            "seconds": seconds,
            "unknown": unknown.model_extra["message"],
            "crash": failure(lambda: chat("crash")),
            "crash_in_stream": failure(lambda: list(chat("crash", stream=True))),
        }
    )
)
