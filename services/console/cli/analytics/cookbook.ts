/**
 * `di cookbook ...`: the questions of fraud teams, and their answers for a tenant. A question runs
 * with the rights and limits of an analyst of the tenant.
 */
import { InvalidArgumentError, Option } from 'commander'
import type { z } from 'zod'
import { dayMs } from '#shared/core/base/instants.ts'
import type { sqlRowsSchema } from '../../analytics/sql/sql-schemas.ts'
import { type Answer, command, group, read } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toTable } from '../tables.ts'

type Cookbook = Answer<'/sql/cookbook'>
type Question = Cookbook['data'][number]
type Rows = z.infer<typeof sqlRowsSchema>
type RunOptions = { param: Record<string, string>; from?: string; to?: string; csv?: true }

/** Days before `--to` that a question covers when it is run without `--from`. */
const defaultDays = 30
/** A query takes at most 30 s and waits for other tenants before that. */
const queryMaxMs = 120_000

export const cookbook = group('cookbook', 'the questions of fraud teams, answered for a tenant', [
  read('list', 'list the questions with their parameters and default values', '/sql/cookbook', {
    columns: [
      ['NAME', 'name'],
      ['PARAMETERS', ({ parameters }) => Object.entries(parameters).map(toPair).join(' ')],
      ['QUESTION', 'question'],
    ],
  }),
  command<RunOptions>(
    'run <slug> <name>',
    'answer a question by its name or number, as an analyst of the tenant',
    [
      new Option('--param <name=value>', 'a parameter of the question; may be repeated')
        .argParser(toParameters)
        .default({}),
      ['--from <time>', `ISO-8601; ${defaultDays} days before the end when left out`],
      ['--to <time>', 'ISO-8601, exclusive; now when left out'],
      ['--csv', 'print all rows as CSV'],
    ],
    (context, [slug, name], options) => runQuestion(context, slug!, name!, options),
  ),
])

function toPair(pair: readonly [name: string, value: unknown]): string {
  return pair.join('=')
}

async function readCookbook(context: CliContext): Promise<Cookbook> {
  return (await context.adminFetch('GET', '/sql/cookbook')) as Cookbook
}

async function runQuestion(
  context: CliContext,
  slug: string,
  name: string,
  options: RunOptions,
): Promise<void> {
  if (options.csv && context.json) throw new CliError('Give one of --csv and --json.')
  const question = findQuestion(await readCookbook(context), name)
  const statement = { sql: question.sql, parameters: toValues(question, options) }
  const path = `${toTenantPath(slug)}/sql`
  if (options.csv) {
    for await (const text of context.adminText('POST', path, { ...statement, format: 'csv' })) {
      await context.write(text)
    }
    return
  }
  const limit = { timeoutMs: queryMaxMs }
  const answer = await context.adminFetch('POST', path, statement, limit)
  context.out(answer as Rows, toAnswerText)
}

/** By the whole name, the name without its number, or the number. */
function findQuestion({ data }: Cookbook, name: string): Question {
  const found = data.find((one) => {
    const [number, ...words] = one.name.split('-')
    return [one.name, words.join('-'), number, String(Number(number))].includes(name)
  })
  if (found !== undefined) return found
  throw new CliError(`The cookbook has no ${name}: \`di cookbook list\` shows what it has.`)
}

/** The values of all parameters. @throws CliError for one that the question does not have */
function toValues(question: Question, { param, from, to }: RunOptions): Record<string, string> {
  for (const name of Object.keys(param)) {
    if (Object.hasOwn(question.parameters, name)) continue
    const names = Object.keys(question.parameters)
    const known = names.length === 0 ? 'no parameters' : names.join(', ')
    throw new CliError(`${question.name} has no parameter ${name}; it has ${known}.`)
  }
  const toMs = to === undefined ? Date.now() : readTime(to)
  const fromMs = from === undefined ? toMs - defaultDays * dayMs : readTime(from)
  return { ...question.parameters, ...param, from: toInstant(fromMs), to: toInstant(toMs) }
}

function readTime(text: string): number {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new CliError(`${text} is not a time such as 2026-01-31T23:59:59Z.`)
  return ms
}

/** As ClickHouse reads an instant in UTC: `2026-11-25 14:03:00.000`. */
const toInstant = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').slice(0, 23)

function toParameters(text: string, earlier: Record<string, string>): Record<string, string> {
  const [, name, value] = /^(\w+)=([\s\S]*)$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError('must be NAME=VALUE')
  return { ...earlier, [name]: value! }
}

function toAnswerText({ columns, rows, truncated }: Rows): string {
  if (rows.length === 0) return 'There are no rows in this time.'
  const table = toTable(
    columns.map(({ name }) => name.toUpperCase()),
    rows.map((row) => row.map(toCell)),
  )
  return truncated ? `${table}\n\nThere are more rows: --csv prints all.` : table
}

function toCell(value: unknown): string {
  if (value === null) return '-'
  if (Array.isArray(value)) return value.map(toCell).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
