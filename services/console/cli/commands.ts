/**
 * How a command is declared: its words, its operation of the admin API, and what is printed of the
 * answer. Paths, parameters of queries and fields of answers are those of the admin document, so
 * one that is not in it does not compile.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { paths } from '../web/api/schema.ts'
import type { CliContext } from './context.ts'
import { type Column, toColumns } from './tables.ts'

/** Adds a command, or a group of commands. */
export type Entry = (parent: Command, context: CliContext) => void

/** Commands under one word. */
export const group =
  (name: string, description: string, entries: readonly Entry[]): Entry =>
  (parent, context) => {
    const command = parent.command(name).description(description)
    for (const add of entries) add(command, context)
  }

type OptionSpec = Option | readonly [flags: string, description: string]

/** `--limit N`, a whole number from 1 to 500. */
export const limit = (byDefault: number): Option =>
  new Option('--limit <n>', 'at most this many').argParser(toLimit).default(byDefault)

function toLimit(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= 500) return value
  throw new InvalidArgumentError('must be a whole number from 1 to 500')
}

export const cursor = ['--cursor <cursor>', '`next_cursor` of the previous page'] as const

/** The note below a page that is not the last. */
export const toMore = ({ next_cursor: next }: { next_cursor: string | null }): string =>
  next === null ? '' : `More: --cursor ${next}`

/** A command that does what `action` does; each takes `--json`. */
export const command =
  <Options extends object>(
    words: string,
    description: string,
    options: readonly OptionSpec[],
    action: (
      context: CliContext,
      args: readonly (string | undefined)[],
      options: Options,
    ) => Promise<void> | void,
  ): Entry =>
  (parent, context) => {
    const added = parent.command(words).description(description)
    for (const one of options) added.addOption(one instanceof Option ? one : new Option(...one))
    added.option('--json', 'print one JSON document').action(() => {
      const { json: _, ...given } = added.opts()
      return action(context, added.processedArgs as (string | undefined)[], given as Options)
    })
  }

type Methods = 'get' | 'post' | 'put' | 'delete' | 'patch'
type Shortened<Path> = Path extends `/admin/v1${infer Short}` ? Short : never
/** Paths of operations with a method, without `/admin/v1`. */
type PathOf<Method extends Methods> = {
  [Path in keyof paths]: paths[Path] extends Record<Method, { responses: object }>
    ? Shortened<Path>
    : never
}[keyof paths]
type OperationOf<
  Path extends string,
  Method extends Methods,
> = `/admin/v1${Path}` extends keyof paths
  ? paths[`/admin/v1${Path}`] extends Record<Method, infer Operation>
    ? Operation
    : never
  : never
type Content<Answers> = Answers extends { content: { 'application/json': infer Body } }
  ? Body
  : never

/** What an operation answers on success. */
export type Answer<Path extends string, Method extends Methods = 'get'> =
  OperationOf<Path, Method> extends { responses: infer All }
    ? Content<All[Extract<keyof All, 200 | 201 | 202>]>
    : never
type Query<Path extends string> =
  OperationOf<Path, 'get'> extends { parameters: { query?: infer Parameters } }
    ? Partial<Record<keyof NonNullable<Parameters>, string | number | boolean | undefined>>
    : never
type RowOf<Body> = Body extends { data: readonly (infer Row)[] } ? Row : never

/** The answer as a text for people: a table of its `data`, or any text. */
type Shown<Body> =
  | {
      columns: readonly Column<RowOf<Body>>[] | ((answer: Body) => readonly Column<RowOf<Body>>[])
      /** Instead of a table without rows. */
      empty?: string
      /** After the table. */
      note?: (answer: Body) => string
    }
  | { text: (answer: Body) => string }

export function toText<Body>(shown: Shown<Body>, answer: Body): string {
  if ('text' in shown) return shown.text(answer)
  const rows = (answer as { data: readonly RowOf<Body>[] }).data
  if (rows.length === 0 && shown.empty !== undefined) return shown.empty
  const { columns } = shown
  const table = toColumns(typeof columns === 'function' ? columns(answer) : columns, rows)
  const note = shown.note?.(answer) ?? ''
  return `${table}${note === '' ? '' : `\n\n${note}`}`
}

/** Puts the arguments into the path, in their order. */
export function toPath(path: string, args: readonly (string | undefined)[]): string {
  let next = 0
  return path.replace(/\{\w+\}/g, () => encodeURIComponent(args[next++]!))
}

/** `?name=value&...` of what is given; empty when nothing is. */
export function toQuery(values: object): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value))
  }
  return query.size === 0 ? '' : `?${query}`
}

type Read<Path extends string, Options> = Shown<Answer<Path>> & {
  options?: readonly OptionSpec[]
  /** The parameters of the query; the options under their own names when it is left out. */
  query?: (options: Options) => Query<Path>
}

/** A command that prints the answer of a GET. Its arguments are those of the path, in order. */
export const read = <Path extends PathOf<'get'>, Options extends object>(
  words: string,
  description: string,
  path: Path,
  shown: Read<Path, Options>,
): Entry =>
  command<Options>(words, description, shown.options ?? [], async (context, args, options) => {
    const query = toQuery(shown.query?.(options) ?? options)
    const answer = await context.adminFetch('GET', `${toPath(path, args)}${query}`)
    context.out(answer as Answer<Path>, (body) => toText<Answer<Path>>(shown, body))
  })

type Change<Path extends string, Method extends Methods, Options> = Shown<Answer<Path, Method>> & {
  options?: readonly OptionSpec[]
  body?: (options: Options, args: readonly (string | undefined)[]) => object
  timeoutMs?: number
}

/** A command that changes something and prints the answer. */
export const change = <
  Method extends Exclude<Methods, 'get'>,
  Path extends PathOf<Method>,
  Options extends object,
>(
  words: string,
  description: string,
  [method, path]: readonly [Method, Path],
  shown: Change<Path, Method, Options>,
): Entry =>
  command<Options>(words, description, shown.options ?? [], async (context, args, options) => {
    const { timeoutMs } = shown
    const answer = await context.adminFetch(
      method.toUpperCase(),
      toPath(path, args),
      shown.body?.(options, args),
      timeoutMs === undefined ? {} : { timeoutMs },
    )
    context.out(answer as Answer<Path, Method>, (body) => toText<Answer<Path, Method>>(shown, body))
  })
