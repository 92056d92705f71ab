#!/usr/bin/env python3
"""Writes random chat requests with what Jinja renders for them, as reference data for test_chat.

    make_conversations.py [--count N] [--seed S] TEMPLATE.jinja... > conversations.json

Needs jinja2. The environment is set up as the transformers library does it. Every request keeps to what the renderer
shares with the templates: plain schema types, known roles, no system content in parts. The result is
{"requests": [...], "rendered": {TEMPLATE: [text or null, ...]}}; null where the template raises an error.
"""
import argparse
import json
import random
from pathlib import Path

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

KINDS = {"image_url": "image", "input_audio": "audio", "video_url": "video"}
WORDS = ["Oslo", " trimmed ", "two\nlines", "naïve ÄÖ", "<turn|>", "<|\"|>", "a<|channel>b<channel|>c", "x<channel|>y", "", "\u00a0",
         "'quoted' \"text\"", "{k:v}", "日本", "ends<|channel>open"]
NAMES = ["get_weather", "b", "Zeta", "alpha.one", "Éclair", "x-y", "éa", "name", "a_b", "aB"]
NUMBERS = [0, 1, -7, 2**53, 9223372036854775807, 0.5, 1e-7, 1e16, 123456.789, 1e22, -0.0, 0.0001, 0.00001, 1.0, 1e15, 5e-324,
           1.7976931348623157e308, 0.1 + 0.2]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def pick(self, items):
        return self.random.choice(items)

    def text(self):
        return "".join(self.pick(WORDS) for _ in range(self.random.randint(0, 3)))

    def value(self, depth=0):
        kind = self.random.randint(0, 7 if depth < 3 else 4)
        if kind == 0:
            return self.pick(NUMBERS)
        if kind == 1:
            return self.pick([True, False, None])
        if kind < 5:
            return self.text()
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return self.mapping(depth + 1)

    def mapping(self, depth=0):
        return {self.pick(NAMES): self.value(depth) for _ in range(self.random.randint(0, 4))}

    def schema(self, depth=0):
        kind = self.pick(["string", "integer", "number", "boolean", "array", "object", "STRING", None])
        result = {}
        if kind:
            result["type"] = kind
        if self.chance(0.5):
            result["description"] = self.pick(["", "What it is", "ÄÖ <turn|>"])
        if self.chance(0.2):
            result["nullable"] = self.pick([True, False])
        if self.chance(0.3):
            result["enum"] = self.pick([["a", "b"], ["x", None, 3, 0.5, True], []])
        if self.chance(0.2):
            result[self.pick(["title", "default", "minimum", "additionalProperties", "format"])] = self.value(2)
        if kind == "array" and self.chance(0.8):
            result["items"] = self.items(depth)
        if kind == "object" and self.chance(0.8) and depth < 3:
            self.add_properties(result, depth)
        return result

    def items(self, depth):
        if depth >= 3:
            return {"type": "string"}
        result = self.schema(depth + 1)
        if self.chance(0.2):
            result["type"] = ["string", "null"]
        if self.chance(0.3):
            self.add_properties(result, depth)
        return result

    def add_properties(self, result, depth):
        names = NAMES + ["type", "description", "required"]
        result["properties"] = {self.pick(names): self.schema(depth + 1) for _ in range(self.random.randint(0, 4))}
        if self.chance(0.6):
            result["required"] = self.random.sample(sorted(result["properties"]), self.random.randint(0, len(result["properties"])))

    def tool(self):
        function = {"name": self.pick(NAMES)}
        if self.chance(0.8):
            function["description"] = self.pick(["Does things", " padded ", None, ""])
        if self.chance(0.9):
            function["parameters"] = {"type": self.pick(["object", "OBJECT"])}
            if self.chance(0.8):
                self.add_properties(function["parameters"], 0)
        if self.chance(0.1):
            function["response"] = self.pick([{"type": "object"}, {"description": "d", "type": "OBJECT"}, {"type": "string"}])
        return {"type": "function", "function": function}

    def content(self, media=True):
        kind = self.random.randint(0, 5)
        if kind == 0:
            return self.pick([None, ""])
        if kind < 4:
            return self.text()
        parts = []
        for _ in range(self.random.randint(0, 3)):
            if media and self.chance(0.4):
                name = self.pick(sorted(KINDS))
                parts.append({"type": name, name: {}})
            else:
                parts.append({"type": "text", "text": self.text()})
        return parts

    def assistant(self, calls):
        message = {"role": "assistant", "content": self.content()}
        if self.chance(0.3):
            message["reasoning_content"] = self.text()
        if self.chance(0.1):
            message["reasoning"] = self.text()
        if calls:
            message["tool_calls"] = []
            for i in range(self.random.randint(1, 3)):
                arguments = self.mapping()
                call = {"type": "function", "function": {"name": self.pick(NAMES),
                        "arguments": json.dumps(arguments) if self.chance(0.7) else arguments}}
                if self.chance(0.9):
                    call["id"] = f"c{i}"
                message["tool_calls"].append(call)
        if self.chance(0.08):
            message["tool_responses"] = [{"name": self.pick(NAMES), "response": self.pick([self.mapping(), self.value()])}
                                         for _ in range(self.random.randint(1, 2))]
            if self.chance(0.2):
                del message["tool_responses"][0]["response"]
        return message

    def messages(self):
        result = []
        if self.chance(0.4):
            result.append({"role": self.pick(["system", "developer"]), "content": self.pick(["Be brief.", "  x \n", "", None])})
        for _ in range(self.random.randint(0 if result else 1, 6)):
            kind = self.random.randint(0, 9)
            if kind < 4:
                result.append({"role": "user", "content": self.content()})
            elif kind < 6:
                result.append(self.assistant(False))
            elif kind == 9:
                result.append({"role": self.pick(["system", "developer", "model", "tool"]), "content": self.text()})
            else:
                result.append(self.assistant(True))
                for i in range(self.random.randint(0, 3)):
                    reply = {"role": "tool", "content": self.content(media=False)}
                    if self.chance(0.9):
                        reply["tool_call_id"] = f"c{i}"
                    if self.chance(0.5):
                        reply["name"] = self.pick(NAMES)
                    result.append(reply)
        return result

    def request(self):
        result = {"max_tokens": 64, "messages": self.messages(), "add_generation_prompt": self.chance(0.8)}
        if self.chance(0.4):
            result["tools"] = [self.tool() for _ in range(self.random.randint(0, 3))]
        if self.chance(0.4):
            result["chat_template_kwargs"] = {"enable_thinking": self.chance(0.7)}
        return result


def template_form(messages):
    """OpenAI messages as the templates want them: media parts by kind, call arguments parsed."""
    result = json.loads(json.dumps(messages))
    for message in result:
        for call in message.get("tool_calls") or []:
            if isinstance(call["function"]["arguments"], str):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        if isinstance(message.get("content"), list):
            message["content"] = [{"type": KINDS[p["type"]]} if p["type"] in KINDS else p for p in message["content"]]
    return result


def refuse(message):
    raise TemplateError(message)


def render(template, request):
    kwargs = request.get("chat_template_kwargs", {})
    try:
        return template.render(messages=template_form(request["messages"]), tools=request.get("tools"), bos_token="<bos>",
                               add_generation_prompt=request["add_generation_prompt"], **kwargs)
    except (TemplateError, TypeError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("templates", nargs="+", type=Path)
    args = parser.parse_args()
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.globals["raise_exception"] = refuse
    maker = Maker(args.seed)
    requests = [maker.request() for _ in range(args.count)]
    rendered = {}
    for path in args.templates:
        template = environment.from_string(path.read_text(encoding="utf-8"))
        rendered[path.name] = [render(template, request) for request in requests]
    print(json.dumps({"requests": requests, "rendered": rendered}, ensure_ascii=False, indent=None, separators=(",", ":")))


if __name__ == "__main__":
    main()
