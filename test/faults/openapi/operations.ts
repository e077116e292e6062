/**
 * The operations of an OpenAPI 3.1 document: the parameters and bodies, and a compiled validator
 * for every response. Everything comes from the document.
 */
import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

export type Schema = Record<string, unknown>
export type OpenapiDocument = {
  paths: Record<string, Record<string, unknown>>
  security?: Record<string, string[]>[]
  components?: Record<string, Record<string, unknown>>
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}

export type ResponseHeader = { name: string; required: boolean; isValid: ValidateFunction }

export type DocumentedAnswer = {
  headers: ResponseHeader[]
  /** By media type, without its parameters. */
  content: Map<string, ValidateFunction>
}

export type RequestBody = {
  required: boolean
  mediaType: string
  schema: Schema
  examples: unknown[]
  isValid: ValidateFunction
}

export type Operation = {
  document: OpenapiDocument
  /** `GET /v1/di/alerts` */
  name: string
  method: string
  path: string
  /** The name of a server variable when the operation is not served by the document's host. */
  server: string | null
  parameters: (Parameter & { isValid: ValidateFunction })[]
  body: RequestBody | null
  /** Its security scheme. */
  security: string | null
  answers: Map<number, DocumentedAnswer>
}

const methods = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace']

/** The named examples of a parameter, as its schema would have them. */
function toSchemaExamples(examples: NamedExamples | undefined): Schema {
  if (examples === undefined) return {}
  return { examples: Object.values(examples).map(({ value }) => value) }
}

type NamedExamples = Record<string, { value?: unknown }>

type RawOperation = {
  parameters?: (Parameter & { examples?: NamedExamples })[]
  requestBody?: {
    required?: boolean
    content: Record<string, { schema?: Schema; example?: unknown; examples?: NamedExamples }>
  }
  responses: Record<string, Schema>
  security?: Record<string, string[]>[]
}

/**
 * Reads a document.
 * @param id names the document among others
 * @throws when a schema in it cannot be compiled, or a documented status is not a number
 */
export function readOperations(document: OpenapiDocument, id: string): Operation[] {
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true })
  formats.default(ajv)
  ajv.addSchema(document as AnySchema, id)
  // Compiled in place, so that references resolve to the document's own components.
  const compileAt = (pointer: string[]): ValidateFunction =>
    ajv.compile({ $ref: `${id}#/${pointer.map(toPointerPart).join('/')}` })
  const operations: Operation[] = []
  for (const [path, item] of Object.entries(document.paths)
    // A stream does not end, so its answer cannot be read completely.
    .filter(([path]) => !path.endsWith('/stream'))) {
    for (const method of methods.filter((name) => item[name] !== undefined)) {
      const at = ['paths', path, method]
      const raw = item[method] as RawOperation
      const [security = {}] = raw.security ?? document.security ?? []
      operations.push({
        document,
        path,
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        server: toServer(item),
        parameters: (raw.parameters ?? []).map(({ examples, ...parameter }, index) => ({
          ...parameter,
          schema: { ...toSchemaExamples(examples), ...parameter.schema },
          required: parameter.required === true,
          isValid: compileAt([...at, 'parameters', `${index}`, 'schema']),
        })),
        body: readBody(raw, at, compileAt),
        security: Object.keys(security)[0] ?? null,
        answers: readAnswers(document, raw, at, compileAt),
      })
    }
  }
  return operations
}

type CompileAt = (pointer: string[]) => ValidateFunction

function readBody(raw: RawOperation, at: string[], compileAt: CompileAt): RequestBody | null {
  const [entry] = Object.entries(raw.requestBody?.content ?? {})
  if (entry === undefined) return null
  const [mediaType, { schema = {}, example, examples = {} }] = entry
  const named = Object.values(examples).map(({ value }) => value)
  return {
    required: raw.requestBody?.required === true,
    mediaType,
    schema,
    examples: example === undefined ? named : [example],
    isValid: compileAt([...at, 'requestBody', 'content', mediaType, 'schema']),
  }
}

function readAnswers(
  document: OpenapiDocument,
  raw: RawOperation,
  at: string[],
  compileAt: CompileAt,
): Map<number, DocumentedAnswer> {
  const answers = new Map<number, DocumentedAnswer>()
  for (const [status, response] of Object.entries(raw.responses)) {
    if (!/^\d{3}$/.test(status)) throw new Error(`${at.join(' ')}: "${status}" is not a status`)
    const content = new Map<string, ValidateFunction>()
    const here = [...at, 'responses', status]
    for (const mediaType of Object.keys((response.content ?? {}) as object)) {
      content.set(mediaType, compileAt([...here, 'content', mediaType, 'schema']))
    }
    const headers = Object.entries((response.headers ?? {}) as Record<string, Schema>).map(
      ([name, header]) => {
        const component = /^#\/components\/headers\/(.+)$/.exec(String(header.$ref))?.[1]
        const whole = component === undefined ? header : document.components?.headers?.[component]
        const pointer =
          component === undefined
            ? [...here, 'headers', name]
            : ['components', 'headers', component]
        const required = (whole as Schema).required === true
        return { name, required, isValid: compileAt([...pointer, 'schema']) }
      },
    )
    answers.set(Number(status), { headers, content })
  }
  return answers
}

function toServer(item: Record<string, unknown>): string | null {
  const [server] = (item.servers ?? []) as { url: string }[]
  return /^\{(\w+)\}/.exec(server?.url ?? '')?.[1] ?? null
}

const toPointerPart = (part: string): string =>
  encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))
