/**
 * The keys of each process and what each key can do. MASTER_KEY is the console's alone; the others
 * derive from it for one purpose each, and reveal nothing of it. `deploy/README.md` shows this
 * table, and a test compares them.
 */

/** Keys that the console derives for other processes, by their variable: 32 bytes in base64. */
export const derivedKeys = {
  /** The public half of an Ed25519 key: whoever has it can check, and prove nothing. */
  DIRECTORY_PUBLIC_KEY: 'directory signature',
  EDGE_KEY: 'edge',
  TELEMETRY_KEY: 'telemetry batch',
  WEBHOOK_KEY: 'webhook secret',
} as const

export type DerivedKey = keyof typeof derivedKeys
export type KeyVariable = DerivedKey | 'MASTER_KEY'

/** While one master key replaces another, a process may have the previous key as well. */
export const toPrevious = (variable: KeyVariable) => `${variable}_PREVIOUS` as const

/** What a key can do, in plain words; an empty list is nothing. */
type KeyPowers = {
  opens: readonly string[]
  derives: readonly string[]
  proves: readonly string[]
  checks: readonly string[]
}

type KeyedProcess = 'ingest' | 'scorer' | 'api' | 'delivery' | 'console' | 'migrate'

const edgeWords = ['announcements', 'reports', 'request log'] as const
const directoryWords = ['tenants', 'lists', 'verdict key', 'synced mark'] as const

export const processKeys: Readonly<
  Record<KeyedProcess, Readonly<Partial<Record<KeyVariable, KeyPowers>>>>
> = {
  ingest: {
    DIRECTORY_PUBLIC_KEY: { opens: [], derives: [], proves: [], checks: directoryWords },
    EDGE_KEY: {
      opens: ['HMAC secrets', 'install roots', 'Play keys', 'verdict key'],
      derives: [],
      proves: [...edgeWords, 'challenges'],
      checks: [...edgeWords, 'challenges'],
    },
    TELEMETRY_KEY: {
      opens: [],
      derives: [],
      proves: ['telemetry batches'],
      checks: ['telemetry batches'],
    },
  },
  scorer: {
    TELEMETRY_KEY: {
      opens: [],
      derives: [],
      proves: ['telemetry batches'],
      checks: ['telemetry batches'],
    },
  },
  api: {},
  delivery: {
    WEBHOOK_KEY: { opens: ['webhook secrets'], derives: [], proves: [], checks: [] },
  },
  console: {
    MASTER_KEY: {
      opens: ['all secrets'],
      derives: ['all keys'],
      proves: ['all of these', 'removals', 'sign-in attempts'],
      checks: ['all of these', 'removals', 'sign-in attempts'],
    },
  },
  migrate: {},
}

/**
 * Processes that may still get MASTER_KEY for one release, while an installation of the release
 * before is upgraded. They warn of it.
 */
export const mayHaveMasterKey: readonly KeyedProcess[] = ['ingest', 'delivery']

/** The variables of a process's keys, those of a previous master key last. */
export function toKeyVariables(process: KeyedProcess): string[] {
  const variables = Object.keys(processKeys[process]) as KeyVariable[]
  return [...variables, ...variables.map(toPrevious)]
}

/** The table in Markdown, one row for each process and key. */
export function renderProcessKeys(): string {
  const rows = Object.entries(processKeys).flatMap(([process, keys]) => {
    const entries = Object.entries(keys)
    if (entries.length === 0) return [[process, 'none', '', '', '', '']]
    return entries.map(([key, { opens, derives, proves, checks }]) => [
      process,
      `\`${key}\``,
      ...[opens, derives, proves, checks].map((words) => words.join(', ')),
    ])
  })
  const table = [['process', 'key', 'opens', 'derives', 'proves', 'checks'], ...rows]
  const widths = table[0]!.map((_, at) => Math.max(...table.map((row) => row[at]!.length)))
  const toLine = (row: readonly string[]) =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`
  const rule = toLine(widths.map((width) => '-'.repeat(width)))
  return [toLine(table[0]!), rule, ...table.slice(1).map(toLine)].join('\n')
}
