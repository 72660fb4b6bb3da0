// Does with the official client all that it can do and prints what it saw as one JSON object.
// RUNPOD_ENDPOINT_BASE_URL names the server. The endpoint is "local"; it runs one job at a time and
// gives back the items of its input.
import runpodSdk from "runpod-sdk"

const items = ["a", "b", "c"]

// The client prints its waiting to stdout, which belongs to the result here.
console.log = (...words) => console.error(...words)

const endpoint = runpodSdk("any", { baseUrl: process.env.RUNPOD_ENDPOINT_BASE_URL }).endpoint("local")

async function out(id, waiting) {
  for (;;) {
    const job = await endpoint.status(id)
    if (!waiting.includes(job.status)) return job
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const seen = {}
const job = await endpoint.run({ input: { items } })
seen.first_status = job.status
const ended = await out(job.id, ["IN_QUEUE", "IN_PROGRESS"])
seen.status = ended.status
seen.output = ended.output ?? null
const sync = await endpoint.runSync({ input: { items } }, 30000)
seen.run_sync = sync.output ?? null
seen.run_sync_status = sync.status

const streamed = await endpoint.run({ input: { items } })
seen.stream = []
for await (const chunk of endpoint.stream(streamed.id)) seen.stream.push(chunk.output)

const running = await endpoint.run({ input: { items, seconds: 5 } })
seen.running = (await out(running.id, ["IN_QUEUE"])).status
await endpoint.run({ input: { items } })
seen.health = await endpoint.health()
seen.purge_queue = await endpoint.purgeQueue()
seen.cancel = await endpoint.cancel(running.id)
seen.cancelled = (await endpoint.status(running.id)).status

process.stdout.write(JSON.stringify(seen) + "\n")
