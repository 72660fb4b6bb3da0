// Does with the official OpenAI client what the sample server can do and prints what it saw as one JSON
// object. Its argument is the base URL of the API.
import OpenAI from "openai"

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 })

const chat = (text, options = {}) =>
  client.chat.completions.create({ model: "parrot", messages: [{ role: "user", content: text }], ...options })

async function failure(call) {
  try {
    return { answer: await call() }
  } catch (error) {
    return { status: error.status, message: error.error.message }
  }
}

const seen = { models: [], words: [] }
for await (const model of client.models.list()) seen.models.push(model.id)
seen.chat = (await chat("hello parrot")).choices[0].message.content

let first
for await (const chunk of await chat("one two three", { stream: true, seconds: 0.5 })) {
  const word = chunk.choices[0].delta.content
  if (!word) continue
  first ??= performance.now()
  seen.words.push(word)
  seen.seconds = (performance.now() - first) / 1000
}

// An error object of the worker comes back as an answer.
seen.unknown = (await chat("hello", { model: "crow" })).message
for await (const _ of await chat("one two three", { stream: true, seconds: 30 })) break
seen.crash = await failure(() => chat("crash"))
seen.crash_in_stream = await failure(() => chat("crash", { stream: true }))

process.stdout.write(JSON.stringify(seen) + "\n")
