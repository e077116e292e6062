/**
 * Renders the views of analysts. A file in `clickhouse/views` has `{{name}}` in place of what is
 * computed: the columns of the signal catalog, and expressions that several views share.
 */
import { toLabelledSessionsSql } from '#shared/core/outcomes/coverage-sql.ts'
import { toColumnPath } from '#shared/core/signals/column-path.ts'
import {
  categories,
  type SignalCategory,
  type SignalDefinition,
  type SignalType,
  serverCategories,
} from '#shared/core/signals/signal-definition.ts'
import { fullCatalog } from '#shared/core/signals/signals.ts'
import { toEdgeRiskSql } from '#shared/core/velocity/edge-risk.ts'

/** SQL: SDKs spell a platform in several ways; the views, and filters, have one spelling. */
export const toPlatformSql = (platform: string): string => `replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(${platform})), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  )`

const textType = 'LowCardinality(String)'

/**
 * What each column of `telemetry` has that only some SDKs send, for every view of events. New ones
 * come at the end.
 */
const optionalTexts: Readonly<Record<string, string>> = {
  app_version: 'The version of the app',
  os_version: 'The version of the operating system',
  device_brand: 'The maker of the phone',
  device_model: 'The model of the phone',
}

/**
 * The decisions of `decisions` for the rows of `telemetry`, without a join: a join would read the
 * ids of every event for every query, and double its time. A set is made only where a column that
 * uses it is named. It has a hash of the event's id for each bit of its decision, which is risk
 * score + 128 * action. A decision is never below what the edge made of the event, so the greater
 * of both holds. That of 10 million events one has a hash of a million other decisions has a chance
 * of one in 40,000.
 */
const decisionBits = 9
const decisionSet = `(
    select arrayJoin(arrayMap(
      bit -> cityHash64(event_id, bit),
      arrayFilter(
        bit -> bitTest(risk_score + 128 * toUInt16(action), bit),
        range(toUInt8(${decisionBits}))
      )
    ))
    from decisions
  )`
const decidedBits = Array.from(
  { length: decisionBits },
  (_, bit) =>
    `bitShiftLeft(toUInt16(cityHash64(event_id, toUInt8(${bit})) in ${decisionSet}), ${bit})`,
).join('\n  + ')

const decided: readonly { column: string; type: string; about: string; value: string }[] = [
  {
    column: 'risk_score',
    type: 'UInt8',
    about:
      'The score by which it was decided, 0 to 100: rasp_score raised by what is known of the device, the user and the session, or set by a list. It reads all decisions of the tenant, in some 100 bytes of memory each: name it, or *, only where you need it.',
    value: `greatest(${toEdgeRiskSql()}, toUInt8(bitAnd(decided_bits, 127)))`,
  },
  {
    column: 'action',
    type: textType,
    about: 'ALLOW, REVIEW or BLOCK: what was decided. It costs what risk_score costs.',
    value: `['ALLOW', 'REVIEW', 'BLOCK'][
    1 + greatest(toUInt8(rasp_action), bitShiftRight(decided_bits, 7))
  ]`,
  },
]

/**
 * What is measured of a connection, for every view that has it: the columns of `telemetry` and of
 * `alerts_replica`, or the members of the latest connection in `sessions` and `devices`.
 */
const connectionFacts: readonly { name: string; type: string; about: string }[] = [
  {
    name: 'network',
    type: 'String',
    about:
      "The network that is kept of the client's address, in CIDR notation: /24 of IPv4, /48 of IPv6; empty when nothing was measured, and then all connection columns are.",
  },
  {
    name: 'country',
    type: textType,
    about: 'The country of the address, ISO 3166-1 alpha-2; empty when no database knows it.',
  },
  {
    name: 'asn',
    type: 'UInt32',
    about: "The number of the network's operator; 0 when no database knows it.",
  },
  {
    name: 'organization',
    type: textType,
    about: "The name of the network's operator; empty when no database knows it.",
  },
  {
    name: 'kinds',
    type: `Array(${textType})`,
    about: 'What the network is: those of tor, vpn, hosting, proxy, relay and mobile that apply.',
  },
]

/** The column of a type, and its value by the signal's path. */
const typed: Record<SignalType, { type: string; value: (path: string) => string }> = {
  boolean: { type: 'Nullable(Bool)', value: (path) => `${path}.:Bool` },
  number: {
    type: 'Nullable(Float64)',
    value: (path) => `coalesce(${path}.:Float64, toFloat64(${path}.:Int64))`,
  },
  string: { type: 'Nullable(String)', value: (path) => `${path}.:String` },
  strings: {
    type: 'Array(String)',
    value: (path) => `arrayMap(one -> ifNull(one, ''), ${path}.:\`Array(Nullable(String))\`)`,
  },
}

const whenAbsent = 'empty when none was sent.'

type Catalog = Readonly<Record<string, Readonly<Record<string, SignalDefinition>>>>

/**
 * The parts of views by name.
 * @param catalog the signals by category
 */
export function toViewParts(catalog: Catalog = fullCatalog): Readonly<Record<string, string>> {
  const client = toTyped(catalog, categories)
  const server = toTyped(catalog, serverCategories)
  const texts = Object.entries(optionalTexts)
  return {
    platform: toPlatformSql('platform'),
    decided_bits: decidedBits,
    labelled_sessions: toLabelledSessionsSql(),
    decided_columns: decided
      .map(({ column, type, about }) => `${column} ${type} comment ${quote(about)}`)
      .join(',\n  '),
    decided_values: decided.map(({ column, value }) => `${value} as ${column}`).join(',\n  '),
    optional_columns: texts
      .map(([name, what]) => `${name} ${textType} comment ${quote(`${what}; ${whenAbsent}`)}`)
      .join(',\n  '),
    optional_values: texts.map(([name]) => name).join(', '),
    connection_columns: connectionFacts
      .map(({ name, type, about }) => `connection_${name} ${type} comment ${quote(about)}`)
      .join(',\n  '),
    connection_values: connectionFacts.map(({ name }) => `connection_${name}`).join(', '),
    latest_connection_values: connectionFacts
      .map(({ name }) => `connection.${name} as connection_${name}`)
      .join(', '),
    signal_columns: toColumns(client),
    signal_values: toValues(client),
    server_signal_columns: toColumns(server),
    server_signal_values: toValues(server),
  }
}

type TypedSignal = (typeof typed)[SignalType] & { path: string; description: string }

const toTyped = (catalog: Catalog, some: readonly SignalCategory[]): TypedSignal[] =>
  some.flatMap((category) =>
    Object.entries(catalog[category] ?? {}).map(([name, { type, description }]) => ({
      path: toColumnPath(category, name),
      description,
      ...typed[type],
    })),
  )

const toColumns = (signals: readonly TypedSignal[]): string =>
  signals
    .map(({ path, type, description }) => `\`${path}\` ${type} comment ${quote(description)}`)
    .join(',\n  ')

const toValues = (signals: readonly TypedSignal[]): string =>
  signals.map(({ path, value }) => `${value(path)} as \`${path}\``).join(',\n  ')

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** @throws for the name of a part that is not there */
export function renderView(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const part = parts[name]
    if (part === undefined) throw new Error(`no part of a view has the name ${name}`)
    return part
  })
}

/** Former names of views, for dashboards and queries that have them, and for older processes. */
export const formerNames: Readonly<Record<string, string>> = {
  around_confirmed: 'linked_entities',
  ledger: 'reconciliation',
  signal_jumps: 'prevalence_spikes',
}

/** What says that a view is another one under its former name. */
export const toFormerComment = (name: string): string => `The former name of ${name}.`

/**
 * The same view under a former name. It reads the tables as the view itself does: a view over a
 * view would need rights of its own.
 * @param text of the view, rendered
 */
export function toFormerView(text: string, formerName: string, name: string): string {
  return text
    .replace(`{analytics:Identifier}.${name} `, () => `{analytics:Identifier}.${formerName} `)
    .replace(/\ncomment '(?:[^']|'')*';\s*$/, () => `\ncomment ${quote(toFormerComment(name))};\n`)
}

/**
 * The same view, which reads as another user.
 * @throws when it is not the statement of a view
 */
export function withDefiner(statement: string, user: string): string {
  const begin = /^(\)|create or replace view \S+) as$/m
  if (!begin.test(statement)) throw new Error('no view begins here')
  return statement.replace(begin, `$1 definer = ${user} sql security definer as`)
}
