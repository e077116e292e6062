/**
 * Makes an OpenAPI 3.1 document from the routes of a server. The zod schemas of a route are what
 * its requests are checked against and what the document says. A route lists its own problems in
 * `schema.problems`; problems that follow from its method and parameters are added here.
 */
import { STATUS_CODES } from 'node:http'
import swagger from '@fastify/swagger'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifySchema,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod'
import type { z } from 'zod'
import type { ProblemCode } from '#shared/core/http/problem.ts'
import { entityTagHeader, entityTagHeaders, ifNoneMatchParameter } from './conditional-requests.ts'
import { idempotencyKeyParameter, replayedHeader, replayedHeaders } from './idempotency.ts'
import { openEnums } from './open-enums.ts'
import {
  type Json,
  problemHeaders,
  requestIdHeader,
  serverProblems,
  toProblemExamples,
  toProblemResponses,
} from './openapi-problems.ts'
// Registers the schema `Problem`, which error responses refer to.
import '#shared/core/http/api-schemas.ts'
import '#shared/core/http/batch-schemas.ts'
import '#shared/core/installs/install-answers.ts'
import '#shared/core/installs/install-request.ts'

/** A server whose routes have zod schemas. */
export type ZodApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>

declare module 'fastify' {
  interface FastifySchema {
    /** The problems of this route, beside those of every route. */
    problems?: readonly ProblemCode[]
    /** An example of a successful response body. */
    example?: unknown
    /** An example of a request body. */
    bodyExample?: unknown
  }
}

export type OpenapiOptions = {
  /** Everything that no route describes. `paths` and `webhooks` are added to those of the routes. */
  document: {
    info: { title: string; version: string; description: string }
    servers: Json[]
    /** The tags of all operations, each with its description. */
    tags: { name: string; description: string }[]
    security: Record<string, string[]>[]
    securitySchemes: Json
    headers?: Json
    paths?: Json
    webhooks?: Json
  }
  /** Describes a route by its method and its path, such as `/tenants/:tenant_id`. */
  describeRoute: (method: string, path: string) => RouteDescription
  /** Further headers of a response by its status. */
  headersOf?: (status: number) => Json
}

const license = { name: 'Apache-2.0', identifier: 'Apache-2.0' }
/** Every installation has its own operators. */
const contact = { name: 'The operators of this installation' }

/** What all routes of a kind have in common. */
export type RouteDescription = {
  /** Problems beside those of the server and of the route itself. */
  problems: readonly ProblemCode[]
  /** By default that of the document. */
  security?: Record<string, string[]>[]
  /** Who may call; it ends the description of the operation. */
  callers?: string
}

/**
 * Registers the document. Call it before the routes are added; `app.swagger()` returns the document
 * once the server is ready.
 */
export async function addOpenapi(app: FastifyInstance, options: OpenapiOptions): Promise<void> {
  const { document, headersOf = () => ({}) } = options
  const { paths, webhooks, headers, securitySchemes, ...rest } = document
  const config = { zodToJsonConfig: { override: adjustSchema } }
  const toJsonSchemas = createJsonSchemaTransform(config)
  const addComponents = createJsonSchemaTransformObject(config)
  await app.register(swagger, {
    // Server addresses are relative, which the plugin cannot strip.
    stripBasePath: false,
    openapi: {
      openapi: '3.1.0',
      ...rest,
      info: { ...rest.info, contact, license },
      components: {
        securitySchemes,
        headers: { ...problemHeaders, ...entityTagHeaders, ...replayedHeaders, ...headers },
        examples: toProblemExamples(),
      },
    } as object,
    transform: (input) => {
      const {
        problems = [],
        example,
        bodyExample,
        conditional,
        ...schema
      } = (input.schema ?? {}) as FastifySchema
      const transformed = toJsonSchemas({ ...input, schema } as never)
      if (schema.hide) return { url: transformed.url, schema: { hide: true } }
      const methods = [input.route.method].flat()
      const route = options.describeRoute(methods[0]!, input.url)
      requireNames(schema, document.tags, `${methods[0]} ${input.url}`)
      const description = [schema.description, route.callers].filter(Boolean).join('\n\n')
      const codes = [
        ...serverProblems,
        ...route.problems,
        ...problems,
        ...toProblemsOfParts(methods, input.url, schema),
        ...toProblemsOfKeys(schema.idempotency),
      ]
      const extra = {
        ...(description === '' ? {} : { description }),
        ...(route.security === undefined ? {} : { security: route.security }),
        'x-problems': codes,
        ...(example === undefined ? {} : { 'x-example': example }),
        ...(bodyExample === undefined ? {} : { 'x-body-example': bodyExample }),
        ...(conditional === undefined ? {} : { 'x-conditional': conditional }),
        ...(schema.idempotency === 'kept' ? { 'x-idempotent': true } : {}),
      }
      return { url: transformed.url, schema: { ...transformed.schema, ...extra } as FastifySchema }
    },
    transformObject: (input) => {
      const made = addComponents(input as never) as OpenapiDocument
      for (const item of Object.values(made.paths ?? {})) {
        for (const operation of Object.values(item)) completeOperation(operation, headersOf)
      }
      made.paths = { ...paths, ...made.paths } as NonNullable<OpenapiDocument['paths']>
      if (webhooks !== undefined) made.webhooks = webhooks
      keepUsedParts(made)
      openEnums(made)
      return made as never
    },
  })
}

/** @throws Error for a route that a client generator could not name or a reader not find */
function requireNames(
  { operationId, tags = [] }: FastifySchema,
  known: { name: string }[],
  route: string,
): void {
  if (operationId === undefined) throw new Error(`${route} needs an operationId in its schema`)
  if (tags.length === 1 && known.some(({ name }) => name === tags[0])) return
  const names = known.map(({ name }) => name).join(', ')
  throw new Error(`${route} needs one of the tags in its schema: ${names}`)
}

/** Problems of the parts of a request: its path parameters, its query, its body. */
function toProblemsOfParts(
  methods: readonly string[],
  url: string,
  schema: FastifySchema,
): ProblemCode[] {
  return [
    ...(url.includes(':') ? (['invalid_path', 'uri_too_long'] as const) : []),
    ...(schema.querystring === undefined ? [] : (['invalid_query'] as const)),
    ...(methods.includes('GET')
      ? []
      : (['invalid_body', 'body_too_large', 'unsupported_media_type'] as const)),
  ]
}

/** Problems of an `Idempotency-Key`. */
function toProblemsOfKeys(idempotency: FastifySchema['idempotency']): ProblemCode[] {
  if (idempotency === undefined) return []
  if (idempotency === 'refused') return ['idempotency_key_refused']
  return ['idempotency_key_refused', 'idempotency_key_in_flight', 'idempotency_key_reused']
}

type Response = { description: string; headers?: Json; content?: Record<string, Json> }
type Operation = {
  responses: Record<string, Response>
  'x-problems'?: ProblemCode[]
  'x-example'?: unknown
  'x-body-example'?: unknown
  requestBody?: { content: Record<string, Json> }
  'x-conditional'?: true
  'x-idempotent'?: true
  parameters?: Json[]
}
type OpenapiDocument = {
  paths?: Record<string, Record<string, Operation>>
  webhooks?: Json
  components: Record<Kind, Record<string, Json>>
}
/** Kinds of parts that a document refers to by name. */
type Kind = 'schemas' | 'examples'

/** Adds headers and the example to the successful responses, and all error responses. */
function completeOperation(operation: Operation, headersOf: (status: number) => Json): void {
  const { 'x-problems': codes = [], 'x-example': example } = operation
  delete operation['x-problems']
  delete operation['x-example']
  const [body] = Object.values(operation.requestBody?.content ?? {})
  if (body !== undefined && 'x-body-example' in operation)
    body.example = operation['x-body-example']
  delete operation['x-body-example']
  for (const [status, response] of Object.entries(operation.responses)) {
    // The plugin's placeholder for a schema without a description.
    if (response.description === 'Default Response') {
      response.description = STATUS_CODES[status] ?? ''
    }
    response.headers = { ...requestIdHeader, ...headersOf(Number(status)) }
    const [media] = Object.values(response.content ?? {})
    if (media !== undefined && example !== undefined) media.example = example
  }
  if (operation['x-conditional']) makeConditional(operation, headersOf)
  delete operation['x-conditional']
  if (operation['x-idempotent']) makeIdempotent(operation)
  delete operation['x-idempotent']
  Object.assign(operation.responses, toProblemResponses(codes, headersOf))
}

function makeIdempotent(operation: Operation): void {
  operation.parameters = [...(operation.parameters ?? []), idempotencyKeyParameter]
  for (const response of Object.values(operation.responses)) {
    response.headers = { ...response.headers, ...replayedHeader }
  }
}

function makeConditional(operation: Operation, headersOf: (status: number) => Json): void {
  const { responses } = operation
  operation.parameters = [...(operation.parameters ?? []), ifNoneMatchParameter]
  responses['200']!.headers = { ...responses['200']!.headers, ...entityTagHeader }
  responses['304'] = {
    description: 'The answer is the one that `If-None-Match` names.',
    headers: { ...requestIdHeader, ...entityTagHeader, ...headersOf(304) },
  }
}

/** Adjusts what zod makes of a schema. */
function adjustSchema({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: Json }): void {
  const schema = zodSchema as z.ZodType
  const { type, catchall } = schema._zod.def as { type: string; catchall?: unknown }
  // Objects may have further fields, so that a new field breaks no client made from the document.
  if (type === 'object' && catchall === undefined) delete jsonSchema.additionalProperties
  // The format says the same, in one word.
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  // Zod omits these where a parameter is transformed.
  const { examples, default: standard } = schema.meta?.() ?? {}
  if (examples !== undefined) jsonSchema.examples = examples
  if (standard !== undefined) jsonSchema.default = standard
}

/**
 * Removes schemas and examples that the document does not refer to, and sorts the others by name:
 * zod lists them in the order in which modules were loaded.
 */
function keepUsedParts(document: OpenapiDocument): void {
  const { components } = document
  const used = { schemas: new Set<string>(), examples: new Set<string>() }
  const visit = (part: unknown): void => {
    const refs = JSON.stringify(part).matchAll(/"#\/components\/(schemas|examples)\/([^"]+)"/g)
    for (const [, kind, id] of refs) {
      const known = used[kind as Kind]
      if (known.has(id!)) continue
      known.add(id!)
      visit(components[kind as Kind][id!])
    }
  }
  visit([document.paths, document.webhooks ?? {}])
  for (const kind of ['schemas', 'examples'] as const) {
    const kept = [...used[kind]].sort().map((id) => [id, components[kind][id]!] as const)
    components[kind] = Object.fromEntries(kept)
  }
}
