/** Runs the queries of the cookbook on the simulated history and writes its page. */
import { type Question, readCookbook } from '#shared/io/analytics/cookbook.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { cookbookFleet, historyDays, historyEndMs, historyStartMs } from './cookbook-span.ts'
import { type FleetHistory, fleetTenant } from './fleet-history.ts'
import { toInstant } from './history-alerts.ts'

export type Answer = { columns: string[]; rows: Record<string, unknown>[] }

/** The whole time of the simulated history. */
const wholeHistory = {
  from: toInstant(historyStartMs),
  to: toInstant(historyEndMs),
}

/** Runs a question. @param given tenant, and parameters that replace defaults */
export async function runQuestion(
  clickhouse: Clickhouse,
  { sql, parameters }: Question,
  given: { tenant: string } & Record<string, string>,
): Promise<Answer> {
  const result = await clickhouse.query({
    query: sql,
    query_params: { ...wholeHistory, ...parameters, ...given },
    format: 'JSON',
  })
  const { meta, data } = await result.json<Record<string, unknown>>()
  return { columns: (meta ?? []).map(({ name }) => name), rows: data }
}

const rowsShown = 6

/** The page of all questions with their answers on the simulated fleet, as Markdown. */
export async function renderCookbookPage(
  clickhouse: Clickhouse,
  { events }: FleetHistory,
): Promise<string> {
  const answered = []
  for (const question of readCookbook()) {
    const answer = await runQuestion(clickhouse, question, { tenant: fleetTenant })
    answered.push({ question, answer })
  }
  const { seed, devices } = cookbookFleet
  const size = `${devices} devices, ${events.length} events`
  const head = `<!-- Made by \`npm run generate\` from clickhouse/cookbook: do not edit. -->

# Cookbook

Questions of fraud teams, each answered by one query over the views of [analytics](ANALYTICS.md).
Each query is a file in \`clickhouse/cookbook/\`. It takes \`tenant\`, \`from\` (inclusive) and \`to\`
(exclusive) in UTC, and parameters of its own, as ClickHouse has them: \`param_\` and the name
in the address. \`di cookbook run SLUG 1\` does the same. The answers come from the simulated fleet:
${size}, ${historyDays} days from ${wholeHistory.from.slice(0, 10)}, seed ${seed}.

\`\`\`sh
curl -u "$ANALYST_USER:$ANALYST_PASSWORD" \\
  "$ANALYST_URL?param_tenant=acme&param_from=2026-07-01&param_to=2026-08-01" \\
  --data-binary @clickhouse/cookbook/02-many-users-on-a-device.sql
\`\`\`
`
  const contents = answered
    .map(({ question: { question } }, at) => `${at + 1}. [${question}](#${at + 1})\n`)
    .join('')
  return [head, contents, ...answered.map(toSection)].join('\n')
}

function toSection(
  { question, answer }: { question: Question; answer: Answer },
  at: number,
): string {
  const parameters = Object.entries(question.parameters).map(
    ([name, value]) => `\`${name}\` ${value}`,
  )
  const list = parameters.length === 0 ? '' : `\n\nParameters here: ${parameters.join(', ')}.`
  const { columns, rows } = answer
  const shown = rows.slice(0, rowsShown).map((row) => columns.map((one) => toCell(row[one])))
  const more = rows.length > rowsShown ? `\n\n${rows.length} rows in all.` : ''
  return `<a id="${at + 1}"></a>
## ${at + 1}. ${question.question}

**Answer**: ${question.answer}

**Do**: ${question.advice}${list}

\`\`\`sql
-- ${question.name}.sql
${question.sql}
\`\`\`

${toTable([columns, columns.map(() => '---'), ...shown])}${more}
`
}

const toTable = (rows: string[][]): string =>
  rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const textShown = 25
const itemsShown = 4

function toCell(value: unknown): string {
  if (Array.isArray(value)) {
    const shown = value.slice(0, itemsShown).map(toCell)
    return [...shown, ...(value.length > itemsShown ? [`… (${value.length})`] : [])].join(', ')
  }
  if (value === null) return ''
  const text = String(value).replace(/^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{3}$/, '$1')
  // Ids are long and meaningless for readers; a text with a dot is the name of a signal.
  const isId = /^[\w@+:/=-]+$/.test(text) && text.length > textShown
  return isId ? `${text.slice(0, textShown - 1)}…` : text.replaceAll('|', '\\|')
}
