// Shows /openapi.json. Everything goes into the page as text, never as markup.

const doc = await (await fetch("/openapi.json")).json()
const methods = ["get", "post", "put", "patch", "delete"]

// make builds an element: a name with optional classes, then attributes, then children.
function make(kind, attributes, ...children) {
  const [name, ...classes] = kind.split(".")
  const element = document.createElement(name)
  if (classes.length) element.className = classes.join(" ")
  Object.entries(attributes ?? {}).forEach(([key, value]) => element.setAttribute(key, value))
  element.append(...children.flat(Infinity).filter((child) => child != null))
  return element
}

const resolve = (part) =>
  part?.$ref ? part.$ref.slice(2).split("/").reduce((at, key) => at[key], doc) : part

// prose is text in which `code` is marked.
const prose = (text) =>
  text ? make("p", {}, text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part))) : null

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop()
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ")
  if (schema.type === "array") return `array of ${typeOf(schema.items ?? {})}`
  return [schema.type ?? "any value"].flat().join(" | ") + (schema.format ? ` (${schema.format})` : "")
}

function bounds(schema) {
  const part = schema.anyOf?.[0] ?? schema
  return [
    part.minimum !== undefined && `from ${part.minimum}`,
    part.maximum !== undefined && `to ${part.maximum}`,
    part.maxItems !== undefined && `at most ${part.maxItems}`,
    schema.default !== undefined && `default ${schema.default}`,
  ].filter(Boolean).join(", ")
}

// fields lists the properties of an object, those of objects inside indented below.
function fields(schema, seen = []) {
  if (schema.$ref && seen.includes(schema.$ref)) return null
  const path = schema.$ref ? [...seen, schema.$ref] : seen
  const full = resolve(schema)
  if (full.type === "array" || full.items) return full.items ? fields(full.items, path) : null
  if (!full.properties) return null
  return make("dl", {}, Object.entries(full.properties).flatMap(([name, property]) => {
    const target = resolve(property)
    return [
      make("dt", {}, make("code", {}, name), full.required?.includes(name) ? make("b", {}, "required") : null),
      make("dd", {}, make("span.type", {}, [typeOf(property), bounds(target)].filter(Boolean).join(", ")),
        prose(property.description ?? target.description), fields(property, path)),
    ]
  }))
}

function body(content) {
  return Object.entries(content ?? {}).map(([media, { schema }]) =>
    [make("p.type", {}, `${media}: ${typeOf(schema)}`), fields(schema)])
}

function parameters(list) {
  if (!list.length) return []
  return [make("h4", {}, "Parameters"), make("dl", {}, list.flatMap((p) => [
    make("dt", {}, make("code", {}, p.name), p.required ? make("b", {}, "required") : null),
    make("dd", {}, make("span.type", {}, [`in ${p.in}`, typeOf(p.schema), bounds(p.schema)].filter(Boolean).join(", ")), prose(p.description)),
  ]))]
}

// base is where the paths of a part of the document begin.
function base({ servers = doc.servers }) {
  const { url, variables = {} } = servers[0]
  return location.origin + url.replace(/\{(\w+)\}/g, (_, name) => variables[name].default).replace(/\/$/, "")
}

function curl(method, path, item, operation, list) {
  const url = list.filter((p) => p.in === "path").reduce(
    (text, p) => text.replace(`{${p.name}}`, p.example ?? p.schema.enum?.[0] ?? `$${p.name.toUpperCase()}`), path)
  const example = operation.requestBody?.content["application/json"]?.example
  const words = ["curl", method === "get" ? "" : `-X ${method.toUpperCase()}`, `"${base(item)}${url}"`].filter(Boolean)
  if (example !== undefined) words.push("\\\n  -H 'Content-Type: application/json'", `\\\n  -d '${JSON.stringify(example)}'`)
  return make("pre", {}, words.join(" "))
}

function operationOf({ method, path, item, operation }) {
  const list = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve)
  return make("details.operation", { id: operation.operationId },
    make("summary", {}, make(`span.method.${method}`, {}, method.toUpperCase()), make("code", {}, path), make("span", {}, operation.summary)),
    make("div.inside", {},
      prose(operation.description ?? item.description),
      curl(method, path, item, operation, list),
      parameters(list),
      operation.requestBody ? [make("h4", {}, "Body"), body(operation.requestBody.content)] : null,
      make("h4", {}, "Answers"),
      Object.entries(operation.responses).map(([status, part]) => {
        const response = resolve(part)
        return make("details.answer", {},
          make("summary", {}, make(`span.status.s${status[0]}`, {}, status), make("span", {}, response.description)), body(response.content))
      })))
}

const operations = Object.entries(doc.paths).flatMap(([path, item]) =>
  methods.filter((method) => item[method]).map((method) => ({ method, path, item, operation: item[method] })))

document.title = doc.info.title
document.querySelector("h1").textContent = doc.info.title
document.querySelector(".about").append(doc.info.description + " ", make("a", { href: "/openapi.json" }, "openapi.json"))
document.querySelector("main").replaceChildren(
  make("p", {}, "All paths are below ", make("code", {}, base({})), " and, for the first endpoint, below ", make("code", {}, location.origin), "."),
  ...doc.tags.map(({ name, description }) => make("section", {},
    make("h2", {}, name), prose(description),
    operations.filter(({ operation }) => operation.tags[0] === name).map(operationOf))))
document.querySelector("nav").append(...doc.tags.map(({ name }) => make("details", { open: "" },
  make("summary", {}, name),
  operations.filter(({ operation }) => operation.tags[0] === name).map(({ method, path, operation }) =>
    make("a", { href: `#${operation.operationId}` }, make(`span.method.${method}`, {}, method.toUpperCase()), path)))))

// A link opens what it leads to.
function open() {
  const target = document.getElementById(location.hash.slice(1))
  if (target?.matches("details")) target.open = true
  target?.scrollIntoView()
}
addEventListener("hashchange", open)
open()
