/** What is recorded of a release, as the present code has it. */
import { z } from 'zod'
import { processNames, processPermissions } from '#shared/core/permissions/process-permissions.ts'
import type { ClickhouseNode } from '#shared/io/clickhouse/clickhouse.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { Tables } from './compare.ts'
import { constants, formats } from './formats.ts'

export type RecordedFormat = { schema: unknown; key: string; value: unknown; text: string }

/** Formats by name, each with a sample. */
export async function readFormats(): Promise<Record<string, RecordedFormat>> {
  const entries = Object.entries(formats).map(async ([name, { schema, sample, key, write }]) => {
    const text = await write(sample)
    return [name, { schema: toJsonSchema(schema), key: key(sample), value: sample, text }] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

/** As a reader accepts it: only a strict object refuses unknown members. */
export const toJsonSchema = (schema: z.ZodType): unknown =>
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      for (const annotation of ['$schema', 'description', 'examples'] as const) {
        delete jsonSchema[annotation]
      }
    },
  })

export const readConstants = (): unknown => constants

/** What each process may do in each store, a privilege on one column as an item of its own. */
export const readPermissions = (): unknown =>
  Object.fromEntries(
    processNames.map((name) => {
      const { nats, postgres, clickhouse } = processPermissions[name]
      const subjects = nats && { publish: nats.publish, subscribe: nats.subscribe }
      return [
        name,
        { nats: subjects, postgres: toSingle(postgres), clickhouse: toSingle(clickhouse) },
      ]
    }),
  )

function toSingle(rights: Readonly<Record<string, readonly string[]>> | string | null) {
  if (rights === null || typeof rights === 'string') return rights
  return Object.fromEntries(
    Object.entries(rights).map(([table, privileges]) => [
      table,
      privileges.flatMap((privilege) => {
        const [verb, columns] = privilege.split(/[()]/)
        return columns?.split(', ').map((column) => `${verb}(${column})`) ?? [privilege]
      }),
    ]),
  )
}

type Column = { table: string; column: string; type: string; required: boolean }
type Constraint = { table: string; definition: string }

/** The tables of a migrated PostgreSQL. */
export async function readPostgresTables(db: Queryable): Promise<Tables> {
  const columns = await db.query<Column>(
    `select relname as table, attname as column,
       format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end
         as type,
       attnotnull and not atthasdef and attidentity = '' as required
     from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and attnum > 0 and not attisdropped
     order by relname, attname`,
  )
  const constraints = await db.query<Constraint>(
    `select relname as table, pg_get_constraintdef(pg_constraint.oid) as definition
     from pg_constraint join pg_class on pg_class.oid = conrelid
     where relnamespace = 'public'::regnamespace and not relispartition and contype in ('c', 'f')
     union
     select tablename, regexp_replace(indexdef, '^.* USING btree', 'unique') from pg_indexes
     where schemaname = 'public' and indexdef like 'CREATE UNIQUE%'
     order by 1, 2`,
  )
  return toTables(columns.rows, constraints.rows)
}

/** The tables and views of a migrated ClickHouse, those of analysts included. */
export async function readClickhouseTables(client: ClickhouseNode): Promise<Tables> {
  const read = async <Row>(query: string) =>
    (await client.query({ query, format: 'JSONEachRow' })).json<Row>()
  const name = "if(database = currentDatabase(), '', database || '.') || "
  const isOurs = "database in (currentDatabase(), 'analytics')"
  const columns = await read<Omit<Column, 'required'>>(
    `select ${name}table as table, name as column, type from system.columns where ${isOurs}
     order by all`,
  )
  const engines = await read<Constraint>(
    `select ${name}name as table, trim(engine || ' ' || sorting_key) as definition
     from system.tables where ${isOurs} order by all`,
  )
  return toTables(
    columns.map((column) => ({ ...column, required: false })),
    engines,
  )
}

function toTables(columns: readonly Column[], constraints: readonly Constraint[]): Tables {
  const tables: Tables = {}
  for (const { table, column, type, required } of columns) {
    tables[table] ??= { columns: {}, required: [], constraints: [] }
    tables[table].columns[column] = type
    if (required) tables[table].required.push(column)
  }
  for (const { table, definition } of constraints) tables[table]?.constraints.push(definition)
  return tables
}
