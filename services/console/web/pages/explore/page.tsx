/**
 * Explore: SQL over the analytics views, with the rights and limits of an analyst of the tenant.
 * The query and its parameters are in the URL, so a result is a link.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { CodeEditor } from '../../components/editor/code-editor.tsx'
import type { Fault } from '../../components/editor/editor-options.ts'
import { Input } from '../../components/field.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { useUrlSearch } from '../../components/state/url-state.ts'
import { Empty, Refused } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import { SavedViews } from '../../components/views/saved-views.tsx'
import { downloadCsv } from './download-csv.ts'
import { NeedsServer } from './needs-server.tsx'
import { findParameters, toDefault } from './parameters.ts'
import { historyKey } from './query-history.ts'
import { ResultChart, ResultTable, type Rows } from './results.tsx'
import { Sidebar, useCookbook, useViews } from './sidebar.tsx'

const firstQuery = `select platform, sdk_version, count() as events, uniq(device_id) as devices
from events
where received_at >= now() - interval 7 day
group by platform, sdk_version
order by devices desc
limit 100`

const parameterPrefix = 'p.'

/** The parameters of a saved query, which has them by the names of the address. */
const fromView = (values: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name.slice(parameterPrefix.length), value]),
  )

type Statement = { sql: string; parameters: Record<string, string> }

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  return <Explore key={tenant} tenant={tenant} />
}

function Explore({ tenant }: { tenant: string }) {
  const [search, change] = useUrlSearch()
  const [sql, setSql] = useState(search.sql ?? firstQuery)
  const views = useViews()
  const cookbook = useCookbook()
  const query = useSqlQuery(tenant)
  const parameters = useMemo(() => findParameters(sql), [sql])
  const tables = useMemo(
    () =>
      Object.fromEntries(
        (views.data?.data ?? []).map(({ name, columns }) => [name, columns.map((one) => one.name)]),
      ),
    [views.data],
  )
  const [openedAtMs] = useState(serverNowMs)
  const toValue = (name: string) =>
    search[`${parameterPrefix}${name}`] ?? toDefault(name, openedAtMs)
  const statement = (): Statement => ({
    sql,
    parameters: Object.fromEntries(parameters.map(({ name }) => [name, toValue(name)])),
  })
  // What is not typed is left out: a week ago is another day when the query is opened.
  const view = {
    sql: sql.trim(),
    ...Object.fromEntries(
      parameters.flatMap(({ name }) => {
        const value = search[`${parameterPrefix}${name}`]
        return value ? [[`${parameterPrefix}${name}`, value]] : []
      }),
    ),
  }
  const run = () => {
    if (sql.trim() === '' || query.isRunning) return
    change({ sql: sql === firstQuery ? '' : sql })
    query.run(statement())
  }
  const open = (next: string, values: Record<string, string>, example = '') => {
    setSql(next)
    const dropped = Object.keys(search).filter((name) => name.startsWith(parameterPrefix))
    change({
      ...Object.fromEntries(dropped.map((name) => [name, ''])),
      ...Object.fromEntries(
        Object.entries(values).map(([name, value]) => [`${parameterPrefix}${name}`, value]),
      ),
      sql: next,
      example,
      measure: '',
    })
  }
  const faults = useMemo(
    () => (query.statement?.sql === sql ? findFaults(sql, query.error) : []),
    [query.statement, query.error, sql],
  )
  const question = cookbook.data?.data.find(({ name }) => name === search.example)
  const frame = {
    about:
      "SQL over this tenant's events, devices, alerts and deliveries. It reads only, ends after 30 seconds, and every query is in the audit log.",
    title: 'Explore',
  }
  if (views.data?.needs_server) {
    return (
      <Frame {...frame}>
        <Panel>
          <NeedsServer />
        </Panel>
      </Frame>
    )
  }
  return (
    <Frame {...frame}>
      <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="grid min-w-0 gap-4">
          <Panel>
            {question && (
              <div className="grid gap-1 border-line border-b px-4 py-3">
                <h2 className="font-semibold">{question.question}</h2>
                <p className="text-muted">{question.answer}</p>
                <p className="text-muted">What to do: {question.advice}</p>
              </div>
            )}
            <CodeEditor
              className="h-72"
              faults={faults}
              label="SQL query"
              language="sql"
              onChange={setSql}
              onRun={run}
              tables={tables}
              value={sql}
            />
            {parameters.length > 0 && (
              <div className="flex flex-wrap gap-3 border-line border-t px-4 py-3">
                {parameters.map(({ name, type }) => (
                  <div className="w-52" key={name}>
                    <Input
                      hint={type}
                      label={name}
                      mono
                      onChange={({ target }) =>
                        change({ [`${parameterPrefix}${name}`]: target.value })
                      }
                      value={toValue(name)}
                    />
                  </div>
                ))}
              </div>
            )}
            <div className="flex flex-wrap items-center gap-3 border-line border-t px-4 py-2.5">
              {query.isRunning ? (
                <Button onClick={query.cancel}>Cancel</Button>
              ) : (
                <Button look="primary" onClick={run}>
                  Run <kbd className="font-sans text-xs">Ctrl Enter</kbd>
                </Button>
              )}
              <RunState query={query} />
              <SavedViews
                kind="sql"
                noun="query"
                onOpen={({ sql: saved = '', ...values }) => open(saved, fromView(values))}
                query={view}
                tenant={tenant}
              />
              {query.rows !== null && !query.isRunning && (
                <Csv statement={query.statement!} tenant={tenant} />
              )}
            </div>
          </Panel>
          <Answer query={query} tenant={tenant} />
        </div>
        <Panel>
          <Sidebar
            onPast={(past) => open(past.sql, past.parameters)}
            onQuestion={(one) => open(one.sql, one.parameters, one.name)}
            onView={({ name }) => open(`select *\nfrom ${name}\nlimit 100`, {})}
            tenant={tenant}
          />
        </Panel>
      </div>
    </Frame>
  )
}

/** The place that a syntax error names: the engine counts characters from 1, and bytes from 0. */
function findFaults(sql: string, error: Error | null): Fault[] {
  const [, unit, count] = /failed at (position|byte) (\d+)/.exec(error?.message ?? '') ?? []
  if (count === undefined) return []
  const from = Math.min(Number(count) - (unit === 'position' ? 1 : 0), sql.length)
  const { length } = /^\w*/.exec(sql.slice(from))?.[0] ?? ''
  return [{ from, to: from + Math.max(1, length), message: error!.message }]
}

type SqlQuery = ReturnType<typeof useSqlQuery>

/** One query at a time: a new one, or leaving the page, ends the one before. */
function useSqlQuery(tenant: string) {
  const client = useQueryClient()
  const stop = useRef<AbortController | null>(null)
  const [startedMs, setStartedMs] = useState(0)
  const [statement, setStatement] = useState<Statement | null>(null)
  const mutation = useMutation({
    mutationFn: async ({
      given,
      signal,
    }: {
      given: Statement
      signal: AbortSignal
    }): Promise<Rows> =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/sql', {
          params: { path: { tenant_id: tenant } },
          body: given,
          signal,
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: historyKey(tenant) }),
  })
  useEffect(() => () => stop.current?.abort(), [])
  return {
    isRunning: mutation.isPending,
    rows: mutation.data ?? null,
    error: isCancelled(mutation.error) ? null : mutation.error,
    statement,
    startedMs,
    run: (given: Statement) => {
      stop.current?.abort()
      stop.current = new AbortController()
      setStartedMs(performance.now())
      setStatement(given)
      mutation.mutate({ given, signal: stop.current.signal })
    },
    cancel: () => {
      stop.current?.abort()
      mutation.reset()
    },
  }
}

const isCancelled = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError'

function RunState({ query: { isRunning, rows, startedMs } }: { query: SqlQuery }) {
  const [nowMs, setNowMs] = useState(startedMs)
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => setNowMs(performance.now()), 250)
    return () => clearInterval(timer)
  }, [isRunning])
  const seconds = Math.max(0, nowMs - startedMs) / 1_000
  return (
    <span className="flex-1 text-muted" role="status">
      {isRunning && `Running for ${seconds.toFixed(0)} s, at most 30 s.`}
      {!isRunning && rows !== null && (
        <>
          {rows.truncated ? 'The first ' : ''}
          {rows.rows.length.toLocaleString('en')} {rows.rows.length === 1 ? 'row' : 'rows'} in{' '}
          {rows.duration_ms.toLocaleString('en')} ms
          {rows.rows_read !== null && `, ${rows.rows_read.toLocaleString('en')} read`}
          {rows.truncated && '; the CSV has all'}
        </>
      )}
    </span>
  )
}

function Answer({ query, tenant }: { query: SqlQuery; tenant: string }) {
  if (query.error !== null) {
    const isQueryFault = query.error instanceof ApiProblem && query.error.code === 'query_failed'
    return (
      <Panel title={isQueryFault ? 'The query cannot be answered' : 'The query was not run'}>
        <div className="p-4 font-mono text-sm whitespace-pre-wrap break-words">
          <Refused error={query.error} />
        </div>
      </Panel>
    )
  }
  if (query.rows === null) {
    return (
      <Panel>
        <Empty title={query.isRunning ? 'The query is running' : 'No result yet'}>
          {query.isRunning
            ? 'It can be cancelled above, and ends when this page is left.'
            : 'Run the query, or choose one of the examples.'}
        </Empty>
      </Panel>
    )
  }
  return (
    <div className={query.isRunning ? 'opacity-60' : ''}>
      {query.rows.hints.map((hint) => (
        <p className="pb-2 text-warn" key={hint} role="status">
          {hint}
        </p>
      ))}
      <Tabs
        name="result"
        tabs={[
          {
            id: 'table',
            label: 'Table',
            content: (
              <Panel>
                <ResultTable rows={query.rows} tenant={tenant} />
              </Panel>
            ),
          },
          {
            id: 'chart',
            label: 'Chart',
            content: (
              <Panel>
                <ResultChart rows={query.rows} />
              </Panel>
            ),
          },
        ]}
      />
    </div>
  )
}

/** Runs the query again for all of its rows. */
function Csv({ tenant, statement }: { tenant: string; statement: Statement }) {
  const csv = useMutation({
    mutationFn: (format: 'csv' | 'excel') =>
      downloadCsv({ tenant, statement, format, name: `${tenant}-query.csv` }),
  })
  return (
    <>
      <Button busy={csv.isPending} onClick={() => csv.mutate('csv')}>
        Download CSV
      </Button>
      <Button busy={csv.isPending} onClick={() => csv.mutate('excel')}>
        Download for Excel
      </Button>
      {csv.error && <Refused error={csv.error} />}
    </>
  )
}
