/**
 * Counts the rows of Postgres that an erasure keeps and that hold the erased id all the same: what
 * people wrote about others, and bodies of others' webhooks. Which columns there are is read from
 * the server, so none can be forgotten.
 */
import { mentionsReadSecondsMax } from '#shared/core/base/limits/tenants.ts'
import { toJsonText, toWordPattern } from '#shared/core/base/word-pattern.ts'
import {
  isSqlState,
  type Queryable,
  type Session,
  sqlStates,
} from '#shared/io/postgres/postgres.ts'
import type { ErasureSubject } from './erasure-subject.ts'
import type { Mention } from './mentions.ts'

/** SQL: the rows of a tenant in a table that does not name it. */
const ownersOf: Record<string, string> = {
  delivery_attempts: `exists (select from deliveries as d where d.tenant_id = $1
    and d.delivery_id = t.delivery_id and d.created_at = t.delivery_created_at)`,
  policy_documents: `(exists (select from tenant_policies as p
      where p.tenant_id = $1 and p.policy_hash = t.policy_hash)
    or exists (select from shadow_policies as p
      where p.tenant_id = $1 and p.policy_hash = t.policy_hash))`,
  ...Object.fromEntries(
    ['case_notes', 'case_events', 'case_presence'].map((table) => [
      table,
      'exists (select from cases as c where c.tenant_id = $1 and c.case_id = t.case_id)',
    ]),
  ),
}

type Column = { table: string; name: string; type: string; owned: boolean }

/** The columns that hold text, of every table. Bytes do, unless they are a hash. */
async function listTextColumns(db: Queryable): Promise<Map<string, Column[]>> {
  const { rows } = await db.query<Column>(
    `select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type,
       exists (select from pg_attribute as o
         where o.attrelid = c.oid and o.attname = 'tenant_id' and not o.attisdropped) as owned
     from pg_class as c join pg_attribute as a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and a.attnum > 0 and not a.attisdropped
       and a.attname <> 'tenant_id'
       and (format_type(a.atttypid, null) in ('text', 'text[]', 'json', 'jsonb')
         or format_type(a.atttypid, null) = 'bytea' and a.attname !~ '(hash|sha256)$')
     order by c.relname, a.attnum`,
  )
  return Map.groupBy(rows, ({ table }) => table)
}

/** SQL: a column holds the id, as it is or as JSON writes it; in text as a word. */
function toCondition({ name, type }: Column): string {
  const column = `t."${name}"`
  if (type === 'bytea') {
    return `(position(convert_to(sought.plain, 'UTF8') in ${column}) > 0
      or position(convert_to(sought.json, 'UTF8') in ${column}) > 0)`
  }
  const holds = (form: 'plain' | 'json') =>
    `(strpos(${column}::text, sought.${form}) > 0 and ${column}::text ~ sought.${form}_word)`
  return `(${holds('plain')} or ${holds('json')})`
}

/** Call it when the subject is erased. */
export async function countPostgresMentions(
  session: Session,
  subject: ErasureSubject,
): Promise<Mention[]> {
  const deadlineMs = performance.now() + mentionsReadSecondsMax * 1_000
  const mentions: Mention[] = []
  for (const [table, columns] of await listTextColumns(session)) {
    const owner = columns[0]!.owned ? 't.tenant_id = $1' : ownersOf[table]
    // Rows of no tenant are about no subject of a tenant.
    if (owner === undefined) continue
    mentions.push(...(await countOfTable(session, { subject, table, columns, owner, deadlineMs })))
  }
  return mentions
}

async function countOfTable(
  session: Session,
  at: {
    subject: ErasureSubject
    table: string
    columns: Column[]
    owner: string
    deadlineMs: number
  },
): Promise<Mention[]> {
  const { subject, table, columns, owner, deadlineMs } = at
  const counts = columns.map((one, n) => `count(*) filter (where ${toCondition(one)}) as "${n}"`)
  const json = toJsonText(subject.id)
  const ids = [subject.id, toWordPattern(subject.id), json, toWordPattern(json)]
  const leftMs = Math.ceil(deadlineMs - performance.now())
  const notCounted = [{ place: `postgres.${table}`, rows: null }]
  if (leftMs <= 0) return notCounted
  try {
    const row = await session.transaction(async (tx) => {
      await tx.query(`select set_config('statement_timeout', $1, true)`, [String(leftMs)])
      const { rows } = await tx.query<Record<string, number>>(
        `select ${counts.join(', ')} from "${table}" as t,
           (values ($2, $3, $4, $5)) as sought (plain, plain_word, json, json_word)
         where ${owner}`,
        [subject.tenantId, ...ids],
      )
      return rows[0]!
    })
    return columns.flatMap(({ name }, n) =>
      row[n] === 0 ? [] : [{ place: `postgres.${table}.${name}`, rows: row[n]! }],
    )
  } catch (error) {
    if (isSqlState(error, sqlStates.queryCanceled)) return notCounted
    throw error
  }
}
