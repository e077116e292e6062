/** A collector of traces for tests: it takes OTLP over HTTP as JSON on 127.0.0.1. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type CollectedSpan = {
  service: string
  name: string
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  links: { traceId: string; spanId: string }[]
  attributes: Record<string, unknown>
  isFailed: boolean
}

export type Collector = {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  url: string
  spans: CollectedSpan[]
  /** What it was sent, as text. */
  received: () => string
  /** Headers of the last request. */
  headers: () => Record<string, unknown>
  /** From now on it takes requests and never answers. */
  hang: () => void
  close: () => void
}

type Attribute = { key: string; value: Record<string, unknown> }
type Export = {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      spans: {
        name: string
        traceId: string
        spanId: string
        parentSpanId?: string
        links?: { traceId: string; spanId: string }[]
        attributes: Attribute[]
        status: { code?: number }
      }[]
    }[]
  }[]
}

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  let text = ''
  let headers: Record<string, unknown> = {}
  let isHanging = false
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    headers = request.headers
    if (isHanging) return
    const body = Buffer.concat(chunks).toString()
    text += body
    spans.push(...toSpans(JSON.parse(body) as Export))
    response.writeHead(request.url === '/v1/traces' ? 200 : 404).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    received: () => text,
    headers: () => headers,
    hang: () => {
      isHanging = true
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function toSpans({ resourceSpans }: Export): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(toValues(resource.attributes)['service.name'])
    return scopeSpans.flatMap((scope) =>
      scope.spans.map(({ attributes, status, parentSpanId, links = [], ...span }) => ({
        ...span,
        service,
        parentSpanId,
        links,
        attributes: toValues(attributes),
        isFailed: status.code === 2,
      })),
    )
  })
}

const toValues = (attributes: Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
