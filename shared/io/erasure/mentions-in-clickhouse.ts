/**
 * Counts the rows of ClickHouse that an erasure keeps and that hold the erased id all the same,
 * such as events of other devices that name it in a free field. Which columns there are is read
 * from the server, so none can be forgotten.
 */
import { mentionsReadSecondsMax } from '#shared/core/base/limits/tenants.ts'
import { toJsonText, toWordPattern } from '#shared/core/base/word-pattern.ts'
import { type Clickhouse, isTimeout, quoteName } from '#shared/io/clickhouse/clickhouse.ts'
import type { ErasureSubject } from './erasure-subject.ts'
import type { Mention } from './mentions.ts'

export type CountMentions = (subject: ErasureSubject) => Promise<{
  /** Events of others whose body holds the id; null when there are too many bodies to read. */
  events: number | null
  /** In every other column. */
  others: Mention[]
}>

/** Counted as events. */
const bodies = 'telemetry.body'

export function createCountMentions(clickhouse: Clickhouse): CountMentions {
  return async (subject) => {
    const deadlineMs = performance.now() + mentionsReadSecondsMax * 1_000
    const others: Mention[] = []
    const events = await countEvents(clickhouse, subject, deadlineMs)
    for (const [table, columns] of await listTextColumns(clickhouse)) {
      others.push(...(await countOfTable(clickhouse, { subject, table, columns, deadlineMs })))
    }
    return { events, others }
  }
}

type Column = { name: string; type: string }

/** The columns that hold text, of every table with rows of tenants. */
async function listTextColumns(clickhouse: Clickhouse): Promise<Map<string, Column[]>> {
  const result = await clickhouse.query({
    query: `select table, name, type from system.columns
      where database = currentDatabase() and default_kind not in ('ALIAS', 'EPHEMERAL')
        and match(type, '\\\\b(String|JSON)\\\\b') and not startsWith(type, 'AggregateFunction')
        and name != 'tenant_id'
        and table in (
          select table from system.columns
          where database = currentDatabase() and name = 'tenant_id')
        and table in (
          select name from system.tables
          where database = currentDatabase() and engine != 'MaterializedView')
      order by table, position`,
    format: 'JSONEachRow',
  })
  const found = await result.json<Column & { table: string }>()
  const columns = found.filter(({ table, name }) => `${table}.${name}` !== bodies)
  return Map.groupBy(columns, ({ table }) => table)
}

/** SQL: a column holds the id as a word, in text as it is and elsewhere as JSON writes it. */
function toCondition({ name, type }: Column): string {
  const column = quoteName(name)
  const holds = (text: string, form: 'plain' | 'json') =>
    `(position(${text}, {${form}:String}) > 0 and match(${text}, {${form}_word:String}))`
  if (!/^(LowCardinality\()?String/.test(type)) return holds(`toJSONString(${column})`, 'json')
  return `(${holds(column, 'plain')} or ${holds(column, 'json')})`
}

async function countOfTable(
  clickhouse: Clickhouse,
  at: { subject: ErasureSubject; table: string; columns: Column[]; deadlineMs: number },
): Promise<Mention[]> {
  const { subject, table, columns, deadlineMs } = at
  const counts = columns.map((column) => `countIf(${toCondition(column)})`)
  const row = await readCounts(clickhouse, {
    query: `select ${counts.join(', ')} from ${quoteName(table)}
      where tenant_id = {tenant:String}`,
    subject,
    deadlineMs,
  })
  if (row === null) return [{ place: `clickhouse.${table}`, rows: null }]
  return columns.flatMap(({ name }, index) =>
    row[index] === 0 ? [] : [{ place: `clickhouse.${table}.${name}`, rows: row[index]! }],
  )
}

async function countEvents(
  clickhouse: Clickhouse,
  subject: ErasureSubject,
  deadlineMs: number,
): Promise<number | null> {
  const own =
    subject.kind === 'device'
      ? 'device_id = {plain:String}'
      : '(user_id = {plain:String} or account_id = {plain:String})'
  const row = await readCounts(clickhouse, {
    query: `select uniqExact(event_id) from telemetry
      where tenant_id = {tenant:String} and not ${own} and position(body, {json:String}) > 0`,
    subject,
    deadlineMs,
  })
  return row === null ? null : row[0]!
}

/** @returns null when the time is over */
async function readCounts(
  clickhouse: Clickhouse,
  wanted: { query: string; subject: ErasureSubject; deadlineMs: number },
): Promise<number[] | null> {
  const { tenantId: tenant, id } = wanted.subject
  const leftSeconds = (wanted.deadlineMs - performance.now()) / 1_000
  if (leftSeconds <= 0) return null
  const json = toJsonText(id)
  const words = { plain_word: toWordPattern(id), json_word: toWordPattern(json) }
  try {
    const result = await clickhouse.query({
      query: wanted.query,
      query_params: { tenant, plain: id, json, ...words },
      use_multipart_params_auto: true,
      clickhouse_settings: {
        max_execution_time: Math.ceil(leftSeconds),
        output_format_json_escape_forward_slashes: 0,
      },
      format: 'JSONCompactEachRow',
    })
    const [row] = await result.json<(number | string)[]>()
    return row!.map(Number)
  } catch (error) {
    if (isTimeout(error)) return null
    throw error
  }
}
