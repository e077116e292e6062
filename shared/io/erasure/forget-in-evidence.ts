/**
 * Takes a device out of the evidence of other devices' alerts and decisions. Evidence of
 * `DENY_LISTED_PHONE` once named the denied install of the phone; the reason itself stays.
 */
import { lockSequences } from '#shared/io/alerts/alert-lock.ts'
import { type Clickhouse, quoteName } from '#shared/io/clickhouse/clickhouse.ts'
import { onEveryNode } from '#shared/io/clickhouse/shards.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'

const code = 'DENY_LISTED_PHONE'

/** In alerts and in the bodies of their webhooks. Call it in a transaction. */
export async function forgetInEvidence(
  tx: Queryable,
  { tenantId, deviceId }: { tenantId: string; deviceId: string },
): Promise<void> {
  await lockSequences(tx, [tenantId])
  await tx.query(
    `with named as (
       update alerts set reasons = (
         select jsonb_agg(
           case when one #>> '{evidence,device_id}' = $2 then one #- '{evidence,device_id}'
             else one end order by place)
         from jsonb_array_elements(reasons) with ordinality as each (one, place))
       where tenant_id = $1 and device_id <> $2 and flags ? '${code}'
         and reasons @> jsonb_build_array(jsonb_build_object(
           'evidence', jsonb_build_object('device_id', $2::text)))
       returning alert_id)
     update deliveries set body =
       convert_to(replace(convert_from(body, 'UTF8'), $3, ''), 'UTF8')
     where tenant_id = $1 and alert_id in (select alert_id from named)`,
    // Evidence begins with the phone; the device of the alert stands first in its own object.
    [tenantId, deviceId, `,"device_id":${JSON.stringify(deviceId)}`],
  )
}

/** The member in JSON text, with the comma before it. */
const member = String.raw`, *"device_id": *"([^"\\\\]|\\\\.)*"`
const without = (text: string) => `replaceRegexpAll(${text}, '${member}', '')`

/** In decisions, and in the copies of alerts. Call it while no alert is copied. */
export async function forgetInStoredEvidence(
  clickhouse: Clickhouse,
  tenantId: string,
  is: (text: string) => string,
): Promise<void> {
  const isNamed = (evidence: string) => is(`JSONExtractString(${evidence}, 'device_id')`)
  await update('decisions', `reasons = ${without('reasons')}`, {
    where: `has(flags, '${code}') and arrayExists(
      one -> ${isNamed(`JSONExtractRaw(one, 'evidence')`)}, JSONExtractArrayRaw(reasons))`,
  })
  await update(
    'alerts_replica',
    `reason_evidence = arrayMap(
      one -> if(${isNamed('one')}, ${without('one')}, one), reason_evidence)`,
    {
      where: `has(reason_codes, '${code}') and arrayExists(one -> ${isNamed('one')}, reason_evidence)`,
    },
  )

  async function update(table: string, set: string, { where }: { where: string }): Promise<void> {
    await onEveryNode(clickhouse, (node) =>
      node.command({
        query: `alter table ${quoteName(table)} update ${set}
          where tenant_id = {tenant:String} and not ${is('device_id')} and ${where}`,
        query_params: { tenant: tenantId },
        clickhouse_settings: { mutations_sync: '2' },
      }),
    )
  }
}
