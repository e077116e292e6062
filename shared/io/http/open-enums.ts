/**
 * Opens the enums of answers in an OpenAPI document: a value of a later release is a text like the
 * known ones, so it breaks no client that a generator made. Enums of requests stay closed.
 */
import type { Json } from './openapi-problems.ts'

type Operation = { parameters?: unknown; requestBody?: unknown; responses?: unknown }
type Paths = Record<string, Record<string, Operation>>

/** @param document the whole document; it is changed in place */
export function openEnums(document: {
  paths?: unknown
  webhooks?: unknown
  components: { schemas: Record<string, Json> }
}): void {
  const { schemas } = document.components
  const operations = listOperations(document.paths)
  const asked = new Set<string>()
  for (const { parameters, requestBody } of operations) {
    findSchemas([parameters, requestBody], schemas, asked)
  }
  const sent = listOperations(document.webhooks).map(({ requestBody }) => requestBody)
  const answers = operations.map(({ responses }) => responses)
  const named = Object.entries(schemas).flatMap(([name, schema]) =>
    asked.has(name) ? [] : [schema],
  )
  visit([sent, answers, named])
}

const listOperations = (paths: unknown): Operation[] =>
  Object.values((paths ?? {}) as Paths).flatMap((item) => Object.values(item))

/** Adds the names of the schemas that a part refers to, directly or by another one. */
function findSchemas(part: unknown, schemas: Record<string, Json>, found: Set<string>): void {
  for (const [, name] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name!)) continue
    found.add(name!)
    findSchemas(schemas[name!] ?? {}, schemas, found)
  }
}

function visit(part: unknown): void {
  if (typeof part !== 'object' || part === null) return
  for (const [key, value] of Object.entries(part)) {
    if (!exampleKeys.has(key)) visit(value)
  }
  const schema = part as Json
  // In a schema of its own, `enum` is a list; it can also be the name of a property.
  if (!Array.isArray(schema.enum) || schema.type !== 'string') return
  const { enum: known, type } = schema
  delete schema.enum
  delete schema.type
  schema.anyOf = [{ type, enum: known }, { type }]
}

const exampleKeys = new Set(['example', 'examples', 'default'])

/**
 * An open enum as the values that this release knows, for a client that comes with its service.
 * @returns null for any other part of a document
 */
export function toKnownValues(part: unknown): Json | null {
  const { anyOf, ...rest } = (part ?? {}) as Json
  const [known, other] = (Array.isArray(anyOf) ? anyOf : []) as Json[]
  const isAnyText = other?.type === 'string' && Object.keys(other).length === 1
  return known?.enum !== undefined && isAnyText ? { ...rest, ...known } : null
}
