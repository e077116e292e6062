/** The calls of an OpenAPI document: each with its parameters, examples and errors. */
import { useMemo } from 'react'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Input } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { CodeBlock } from '../../components/secret.tsx'
import { useUrlState } from '../../components/state/url-state.ts'
import { Empty } from '../../components/states.tsx'

type Media = { schema?: unknown; example?: unknown; examples?: Record<string, { value?: unknown }> }
type Operation = {
  summary?: string
  description?: string
  parameters?: {
    name: string
    in: string
    required?: boolean
    description?: string
    schema?: { description?: string }
  }[]
  requestBody?: { content?: Record<string, Media> }
  responses?: Record<string, { description?: string; content?: Record<string, Media> }>
}

export type OpenapiDocument = { paths?: Record<string, Record<string, Operation>> }

const methodTones: Record<string, Tone> = {
  get: 'accent',
  post: 'good',
  put: 'warn',
  patch: 'warn',
  delete: 'bad',
}

type Call = { key: string; method: string; path: string; operation: Operation }

export function Reference({ document }: { document: OpenapiDocument }) {
  const [text, setText] = useUrlState('find')
  const calls = useMemo(() => listCalls(document), [document])
  const wanted = text.toLowerCase()
  const shown = calls.filter(({ key, operation }) =>
    `${key} ${operation.summary ?? ''}`.toLowerCase().includes(wanted),
  )
  return (
    <Panel>
      <div className="border-line border-b p-3">
        <Input
          label="Find a call"
          onChange={({ target }) => setText(target.value)}
          placeholder="Path or what it does"
          type="search"
          value={text}
        />
      </div>
      {shown.length === 0 && <Empty title="No call matches" />}
      {shown.map((call) => (
        <CallItem call={call} key={call.key} />
      ))}
    </Panel>
  )
}

function listCalls({ paths = {} }: OpenapiDocument): Call[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method in methodTones)
      .map(([method, operation]) => ({ key: `${method} ${path}`, method, path, operation })),
  )
}

function CallItem({ call: { key, method, path, operation } }: { call: Call }) {
  const { summary, description, parameters = [], requestBody, responses = {} } = operation
  const body = toExample(requestBody?.content)
  return (
    <details className="border-line border-b last:border-b-0">
      <summary className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 hover:bg-hover">
        <Badge tone={methodTones[method] ?? 'neutral'}>{method.toUpperCase()}</Badge>
        <span className="font-mono text-sm break-all">{path}</span>
        <span className="text-muted">{summary}</span>
      </summary>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-3 px-4 pt-1 pb-4">
        {description && <p className="max-w-3xl">{description}</p>}
        {parameters.length > 0 && (
          <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1">
            {parameters.map(({ name, in: where, required, description: about, schema }) => (
              <div className="contents" key={name}>
                <dt className="font-mono text-sm">{name}</dt>
                <dd className="text-muted">
                  {where}
                  {required ? ', required' : ''}
                  {(about ?? schema?.description) ? `: ${about ?? schema?.description}` : ''}
                </dd>
              </div>
            ))}
          </dl>
        )}
        {body !== null && <CodeBlock code={body} label={`Body of ${key}`} />}
        {Object.entries(responses).map(([status, response]) => {
          const example = toExample(response.content)
          return (
            <div className="grid grid-cols-[minmax(0,1fr)] gap-1" key={status}>
              <p>
                <strong>{status}</strong> {response.description}
              </p>
              {example !== null && Number(status) < 300 && (
                <CodeBlock code={example} label={`${status} of ${key}`} />
              )}
            </div>
          )
        })}
      </div>
    </details>
  )
}

/** The example of a body, else its schema; null without a body. */
function toExample(content: Record<string, Media> | undefined): string | null {
  const media = Object.values(content ?? {})[0]
  if (media === undefined) return null
  const schema = media.schema as { examples?: unknown[] } | undefined
  const example =
    media.example ?? Object.values(media.examples ?? {})[0]?.value ?? schema?.examples?.[0]
  return JSON.stringify(example ?? schema ?? null, null, 2)
}
