"""A small OpenAI server: it yields what vLLM's worker does, with a model that repeats what it is told."""

import asyncio
import json

import runpod

MODEL = {"id": "parrot", "object": "model", "created": 0, "owned_by": "local"}


async def handler(job):
    route, body = job["input"]["openai_route"], job["input"].get("openai_input", {})
    if route == "/v1/models":
        yield {"object": "list", "data": [MODEL]}
    elif route != "/v1/chat/completions":
        yield error(f"no route {route}", 404)
    elif body.get("model") != MODEL["id"]:
        yield error(f"the model {body.get('model')} does not exist", 404)
    elif body.get("stream"):
        for word in answer(body):
            yield event("chat.completion.chunk", {"delta": {"role": "assistant", "content": word}})
            await asyncio.sleep(body.get("seconds", 0))
        yield event("chat.completion.chunk", {"delta": {}, "finish_reason": "stop"})
        yield "data: [DONE]\n\n"
    else:
        message = {"role": "assistant", "content": "".join(answer(body))}
        yield completion("chat.completion", {"message": message, "finish_reason": "stop"})


def answer(body):
    text = body["messages"][-1]["content"]
    if text == "crash":
        raise RuntimeError("the parrot fell silent")
    return [word + " " for word in text.split()]


def completion(kind, choice):
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": MODEL["id"], "choices": [{"index": 0, **choice}]}


def event(kind, choice):
    return f"data: {json.dumps(completion(kind, choice))}\n\n"


def error(message, code):
    return {"object": "error", "message": message, "type": "NotFoundError", "code": code}


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
