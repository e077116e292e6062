/**
 * Writes the types of the pages' client from the admin API's OpenAPI document, in the shape that
 * `openapi-fetch` reads. Our document is made by zod, so it needs only the part of JSON schema that
 * zod writes; anything else is an error, never a guess.
 */

type Json = Record<string, unknown>

type Operation = {
  parameters?: { name: string; in: string; required?: boolean; schema: Json }[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Json }> }
  responses: Record<string, { content?: Record<string, { schema?: Json }> }>
}

const methods = ['get', 'put', 'post', 'delete', 'patch']

/** @returns the text of `web/api/schema.ts` */
export function writeClientTypes(document: { paths?: Json; components?: Json }): string {
  const schemas = (document.components?.schemas ?? {}) as Json
  const paths = Object.entries(inline(document.paths ?? {}, schemas) as Json).map(
    ([path, item]) => {
      const operations = Object.entries(item as Record<string, Operation>)
        .filter(([method]) => methods.includes(method))
        .map(([method, operation]) => `    ${method}: ${writeOperation(operation)}`)
      return `  '${path}': {\n${operations.join('\n')}\n  }`
    },
  )
  return [
    '/** Made from the admin API by `npm run generate:client`: change the API, not this file. */',
    'export interface paths {',
    ...paths,
    '}',
    '',
  ].join('\n')
}

const refPrefix = '#/components/schemas/'

/** Puts named schemas in the places that refer to them. @throws for a name that is not there */
function inline(value: unknown, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((item) => inline(item, schemas))
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as { $ref?: unknown }
  if (typeof $ref === 'string' && $ref.startsWith(refPrefix)) {
    const schema = schemas[$ref.slice(refPrefix.length)]
    if (schema === undefined) throw new Error(`no schema for ${$ref}`)
    return inline(schema, schemas)
  }
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, inline(own, schemas)]))
}

function writeOperation({ parameters = [], requestBody, responses }: Operation): string {
  const places = ['query', 'path'].flatMap((place) => {
    const own = parameters.filter(({ in: where }) => where === place)
    if (own.length === 0) return []
    const optional = own.every(({ required }) => required !== true)
    const fields = own.map(
      ({ name, required, schema }) =>
        `${quote(name)}${required === true ? '' : '?'}: ${writeType(schema)}`,
    )
    return [`${place}${optional ? '?' : ''}: { ${fields.join('; ')} }`]
  })
  const body = requestBody?.content['application/json']
  const lines = [
    `parameters: { ${places.join('; ')} }`,
    ...(body === undefined
      ? []
      : [
          `requestBody${requestBody?.required === true ? '' : '?'}: ` +
            `{ content: { 'application/json': ${writeType(body.schema)} } }`,
        ]),
    `responses: { ${writeResponses(responses)} }`,
  ]
  return `{\n${lines.map((line) => `      ${line}`).join('\n')}\n    }`
}

/** Successes each with its type; what every other answer is, once. */
function writeResponses(responses: Operation['responses']): string {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, { content }]) => {
      const [type, schema] = Object.entries(content ?? {})[0] ?? []
      if (type === undefined) return `${status}: { content?: never }`
      const text = schema?.schema === undefined ? 'unknown' : writeType(schema.schema)
      return `${status}: { content: { '${type}': ${text} } }`
    })
    .join('; ')
}

/** A schema as a TypeScript type. @throws for what zod does not write */
export function writeType(schema: Json): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum))
    return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const options = schema.anyOf ?? schema.oneOf
  if (Array.isArray(options)) {
    return `(${options.map((option) => writeType(option as Json)).join(' | ')})`
  }
  if (Array.isArray(schema.allOf)) {
    return `(${schema.allOf.map((part) => writeType(part as Json)).join(' & ')})`
  }
  if (Array.isArray(schema.type)) {
    return `(${schema.type.map((type) => writeType({ ...schema, type })).join(' | ')})`
  }
  switch (schema.type) {
    case 'string':
      return 'string'
    case 'number':
    case 'integer':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'null':
      return 'null'
    case 'array':
      return `(${writeType((schema.items ?? {}) as Json)})[]`
    case 'object':
      return writeObject(schema)
    case undefined:
      return 'unknown'
    default:
      throw new Error(`no type for ${JSON.stringify(schema).slice(0, 200)}`)
  }
}

function writeObject(schema: Json): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>)
  const required = (schema.required ?? []) as string[]
  const fields = properties.map(
    ([name, own]) => `${quote(name)}${required.includes(name) ? '' : '?'}: ${writeType(own)}`,
  )
  const { additionalProperties: more } = schema
  const rest = typeof more === 'object' && more !== null ? writeType(more as Json) : 'unknown'
  if (fields.length === 0) return more === false ? '{}' : `Record<string, ${rest}>`
  const open = typeof more === 'object' && more !== null
  const known = `{ ${fields.join('; ')} }`
  return open ? `(${known} & Record<string, unknown>)` : known
}

const quote = (name: string) => (/^[a-z_][\w]*$/i.test(name) ? name : JSON.stringify(name))
