/**
 * The view `typed_events`, made from the signal catalog: a migration of its own, because it has a
 * column for every signal.
 */

import type { SignalDefinition, SignalType } from '#shared/core/signals/signal-definition.ts'
import { categories } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'

/** Columns of `events` that come first, with their types and comments as there. */
const eventColumns = [
  ['tenant_id', 'LowCardinality(String)', 'The tenant.'],
  ['received_at', "DateTime64(3, 'UTC')", "When the edge accepted it, by the edge's clock."],
  ['device_id', 'String', 'The device.'],
  ['session_id', 'String', 'The session, unique within its device.'],
  ['user_id', 'String', 'The user that the client named; empty when none.'],
  ['account_id', 'String', 'The account that the client named; empty when none.'],
  ['event_id', 'String', 'The event: the same bytes have the same id.'],
  ['platform', 'LowCardinality(String)', 'android, ios or another, in lower case.'],
  ['sdk_version', 'LowCardinality(String)', "The SDK's version."],
  ['app_version', 'LowCardinality(String)', 'The version of the app; empty when none was sent.'],
  [
    'os_version',
    'LowCardinality(String)',
    'The version of the operating system; empty when none was sent.',
  ],
  ['device_brand', 'LowCardinality(String)', 'The maker of the phone; empty when none was sent.'],
  ['device_model', 'LowCardinality(String)', 'The model of the phone; empty when none was sent.'],
  ['rasp_score', 'UInt8', "The server's score, 0 to 100."],
  ['rasp_action', 'LowCardinality(String)', 'ALLOW, REVIEW or BLOCK: what the score leads to.'],
  ['flags', 'Array(LowCardinality(String))', 'The codes of the reasons behind the score.'],
  ['policy_version', 'UInt32', "The version of the tenant's policy that scored it."],
] as const

const platformSql = `replaceRegexpOne(
    replaceRegexpOne(trimBoth(lowerUTF8(platform)), '^android.*$', 'android'),
    '^(ios|iphone|ipad).*$', 'ios'
  ) as platform`

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

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** The text of the migration. */
export function toTypedEventsSql(): string {
  const signals = categories.flatMap((category) =>
    Object.entries<SignalDefinition>(signalCatalog[category]).map(([name, definition]) => ({
      path: `signals.${category}.${name}`,
      ...definition,
    })),
  )
  const columns = [
    ...eventColumns.map(([name, type, comment]) => `  ${name} ${type} comment ${quote(comment)}`),
    ...signals.map(
      ({ path, type, description }) =>
        `  \`${path}\` ${typed[type].type} comment ${quote(description)}`,
    ),
  ]
  const values = [
    ...eventColumns.map(([name]) => `  ${name === 'platform' ? platformSql : name}`),
    ...signals.map(({ path, type }) => `  ${typed[type].value(path)} as \`${path}\``),
  ]
  return `-- Events with a typed column for every signal of the catalog. Made from the catalog by
-- test/unit/analytics/typed-events.test.ts; do not edit.

create or replace view {analytics:Identifier}.typed_events (
${columns.join(',\n')}
) as
select
${values.join(',\n')}
from telemetry final
settings do_not_merge_across_partitions_select_final = 1, defer_partition_pruning_after_final = 0
comment ${quote(
    'Every accepted event once, with a typed column for every signal of the catalog, named as in events: signals.root.su_binary. A signal that was not measured is null, a list is empty. Name the columns that you need: all of them are many. Cheap as events is.',
  )};
`
}
