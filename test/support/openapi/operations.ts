/**
 * The operations of an OpenAPI 3.1 document: the parameters and bodies, and a check of every
 * response. Everything comes from the document. Equal schemas are compiled once, when they are
 * needed: most of the thousands of them are a few kinds of refusals.
 */
import { Ajv2020, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

export type Schema = Record<string, unknown>
export type OpenapiDocument = {
  paths: Record<string, Record<string, unknown>>
  security?: Record<string, string[]>[]
  components?: Record<string, Record<string, Schema>>
}

/** What a schema does not allow about a value, in words; null when it allows the value. */
export type Check = (value: unknown) => string | null

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
  check: Check
}

export type DocumentedAnswer = {
  headers: { name: string; required: boolean; check: Check }[]
  /** By media type, without its parameters. */
  content: Map<string, Check>
}

export type RequestBody = {
  required: boolean
  mediaType: string
  schema: Schema
  examples: unknown[]
  check: Check
}

export type Operation = {
  document: OpenapiDocument
  /** `GET /v1/di/alerts` */
  name: string
  method: string
  path: string
  /** The name of a server variable when the operation is not served by the document's host. */
  server: string | null
  parameters: Parameter[]
  body: RequestBody | null
  /** Its security scheme. */
  security: string | null
  answers: Map<number, DocumentedAnswer>
}

type NamedExamples = Record<string, { value?: unknown }>

type RawOperation = {
  parameters?: (Omit<Parameter, 'check'> & { examples?: NamedExamples })[]
  requestBody?: {
    required?: boolean
    content: Record<string, { schema?: Schema; example?: unknown; examples?: NamedExamples }>
  }
  responses: Record<
    string,
    { content?: Record<string, { schema?: Schema }>; headers?: Record<string, Schema> }
  >
  security?: Record<string, string[]>[]
}

const methods = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace']

/**
 * Reads a document.
 * @param id names the document among others
 * @throws when a documented status is not a number
 */
export function readOperations(document: OpenapiDocument, id: string): Operation[] {
  const toCheck = createChecks(document, id)
  return (
    Object.entries(document.paths)
      // A stream does not end, so its answer cannot be read completely.
      .filter(([path]) => !path.endsWith('/stream'))
      .flatMap(([path, item]) =>
        methods
          .filter((method) => item[method] !== undefined)
          .map((method): Operation => {
            const raw = item[method] as RawOperation
            const [security = {}] = raw.security ?? document.security ?? []
            const name = `${method.toUpperCase()} ${path}`
            return {
              document,
              path,
              name,
              method: method.toUpperCase(),
              server: toServer(item),
              parameters: (raw.parameters ?? []).map(({ examples, ...parameter }) => ({
                ...parameter,
                schema: { ...toSchemaExamples(examples), ...parameter.schema },
                required: parameter.required === true,
                check: toCheck(parameter.schema),
              })),
              body: readBody(raw, toCheck),
              security: Object.keys(security)[0] ?? null,
              answers: readAnswers(document, name, raw, toCheck),
            }
          }),
      )
  )
}

/** Makes checks of schemas whose references are to components of the document. */
function createChecks(document: OpenapiDocument, id: string): (schema?: Schema) => Check {
  const ajv = new Ajv2020({ strict: false, validateFormats: true, validateSchema: false })
  formats.default(ajv)
  const toText = (schema: Schema) =>
    JSON.stringify(schema).replaceAll('"#/components/', `"http://${id}/components/`)
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    const key = `http://${id}/components/schemas/${name}`
    ajv.addSchema(JSON.parse(toText(schema)) as AnySchema, key)
  }
  const compiled = new Map<string, ValidateFunction>()
  const compile = (text: string) => {
    const present = compiled.get(text) ?? ajv.compile(JSON.parse(text) as AnySchema)
    compiled.set(text, present)
    return present
  }
  return (schema = {}) => {
    const text = toText(schema)
    return (value) => {
      const isValid = compile(text)
      return isValid(value) ? null : toWords(isValid.errors ?? [])
    }
  }
}

const toWords = (errors: ErrorObject[]): string =>
  errors
    .map(({ instancePath, message, params }) => {
      return `${instancePath} ${message} ${JSON.stringify(params)}`
    })
    .join('; ')

/** The named examples of a parameter, as its schema would have them. */
function toSchemaExamples(examples: NamedExamples | undefined): Schema {
  if (examples === undefined) return {}
  return { examples: Object.values(examples).map(({ value }) => value) }
}

type ToCheck = ReturnType<typeof createChecks>

function readBody(raw: RawOperation, toCheck: ToCheck): RequestBody | null {
  const [entry] = Object.entries(raw.requestBody?.content ?? {})
  if (entry === undefined) return null
  const [mediaType, { schema = {}, example, examples = {} }] = entry
  const named = Object.values(examples).map(({ value }) => value)
  return {
    required: raw.requestBody?.required === true,
    mediaType,
    schema,
    examples: example === undefined ? named : [example],
    check: toCheck(schema),
  }
}

function readAnswers(
  document: OpenapiDocument,
  name: string,
  raw: RawOperation,
  toCheck: ToCheck,
): Operation['answers'] {
  const answers: Operation['answers'] = new Map()
  for (const [status, { content = {}, headers = {} }] of Object.entries(raw.responses)) {
    if (!/^\d{3}$/.test(status)) throw new Error(`${name}: "${status}" is not a status`)
    answers.set(Number(status), {
      content: new Map(
        Object.entries(content).map(([type, { schema }]) => [type, toCheck(schema)]),
      ),
      headers: Object.entries(headers).map(([header, own]) => {
        const component = /^#\/components\/headers\/(.+)$/.exec(String(own.$ref))?.[1]
        const whole = component === undefined ? own : document.components!.headers![component]!
        const check = toCheck(whole.schema as Schema)
        return { name: header, required: whole.required === true, check }
      }),
    })
  }
  return answers
}

function toServer(item: Record<string, unknown>): string | null {
  const [server] = (item.servers ?? []) as { url: string }[]
  return /^\{(\w+)\}/.exec(server?.url ?? '')?.[1] ?? null
}
