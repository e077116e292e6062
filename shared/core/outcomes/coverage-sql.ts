/**
 * What `coverage.ts` says, as SQL of ClickHouse: which labels count, which sessions they cover, what
 * each session turned out to be, and the money that was lost in it.
 *
 * Money is counted once. An external id is one loss: its amount is that of its latest label, and it
 * stands at the last session that the label covers, of those that turned out to be fraud. Amounts
 * are decimals, and currencies are never added together.
 */
import { outcomeRanks } from './coverage.ts'
import { legitimateLabel, retractedLabel } from './labels.ts'

const { near, wide } = outcomeRanks
const toRankSql = (isNear: string, isFraud: string) =>
  `if(${isNear}, if(${isFraud}, ${near.fraud}, ${near.legitimate}), ` +
  `if(${isFraud}, ${wide.fraud}, ${wide.legitimate}))`

/** A session by itself: no key of another kind has this text. */
const sessionKey = `concat('of ', toString(length(device_id)), ' ', device_id, ' ', session_id)`

/**
 * SQL: the labels that count, one row each.
 * @param where of the rows of `labels_replica`, such as `tenant_id = {tenant:String}`
 */
export const toCountingLabelsSql = (where = 'true'): string => `
  select
    tenant_id, subject_kind, subject_id, external_id, latest.1 as label_id, latest.2 as seq,
    latest.3 as created_at, latest.4 as label, latest.5 as occurred_at,
    latest.6 as covered_days, latest.7 as amount, latest.8 as currency,
    latest.4 != '${legitimateLabel}' and latest.9 != 'legitimate' as is_fraud
  from (
    select
      tenant_id, subject_kind, subject_id, external_id,
      argMax(
        tuple(
          label_id, seq, created_at, label, occurred_at, covered_days, amount, currency, code_means
        ), seq
      ) as latest
    from labels_replica final
    where ${where}
    group by tenant_id, subject_kind, subject_id, external_id
  )
  where label != '${retractedLabel}'`

// One row for each label and key by which sessions are found. A label of an event is one of its
// session; the bytes of an event name its session, so it has one.
const toKeyedLabelsSql = (where: string): string => `
  select
    tenant_id, label_id, seq, created_at, label, external_id, occurred_at,
    amount, currency, is_fraud, subject_kind = 'session' as is_near,
    occurred_at - toIntervalDay(covered_days) as after, concat(subject_kind, ' ', subject_id) as key
  from (${toCountingLabelsSql(`${where} and subject_kind != 'event'`)})
  union all
  select
    tenant_id, label_id, seq, created_at, label, external_id, occurred_at, amount, currency,
    is_fraud, true as is_near, occurred_at as after, key
  from (
    select tenant_id, event_id as subject_id, any(${sessionKey}) as key
    from telemetry
    where ${where} and event_id in (
      select subject_id
      from labels_replica
      where ${where} and subject_kind = 'event'
    )
    group by tenant_id, event_id
  ) as seen
  inner join (${toCountingLabelsSql(`${where} and subject_kind = 'event'`)}) as named
    using (tenant_id, subject_id)
  union all
  select
    tenant_id, alert_id as label_id, toUInt64(0) as seq,
    if(empty(disposition_at), alerts_replica.created_at, disposition_at[-1]) as created_at,
    if(disposition = 'CONFIRMED', 'fraud', '${legitimateLabel}') as label, '' as external_id,
    alerts_replica.created_at as occurred_at, toDecimal64(0, 4) as amount, '' as currency,
    disposition = 'CONFIRMED' as is_fraud, true as is_near, alerts_replica.created_at as after, ${sessionKey} as key
  from alerts_replica final
  where ${where} and disposition in ('CONFIRMED', 'FALSE_POSITIVE')`

// `rank` is the session's, by all of its labels; `own_rank` that of the row's label.
const toCoveredSessionsSql = (where: string): string => `
  select
    *,
    max(own_rank) over (partition by tenant_id, device_id, session_id) as rank
  from (
    select
      tenant_id, device_id, session_id, started_at, last_seen_at, users, verdict, risk, client,
      label_id, seq, created_at, label, external_id, occurred_at, amount, currency,
      ${toRankSql('is_near', 'is_fraud')} as own_rank
    from (
      select
        tenant_id, device_id, session_id, started_at, last_seen_at, users, verdict, risk, client,
        arrayJoin(arrayConcat(
          [${sessionKey}, concat('session ', session_id), concat('device ', device_id)],
          arrayMap(user -> concat('user ', user), users)
        )) as key
      from sessions final
      where ${where}
    ) as session
    inner join (${toKeyedLabelsSql(where)}) as named using (tenant_id, key)
    where is_near or (started_at > after and started_at <= occurred_at)
  )`

const isFraud = (rank: string) => `${rank} in (${near.fraud}, ${wide.fraud})`

/**
 * SQL: one row for each session that a label covers.
 *
 * - `outcome`: fraud or legitimate.
 * - `label`, `occurred_at`, `latest_labelled_at`: of the latest label that decided.
 * - `labelled_at`: when the outcome was first known, by the earliest label that says so.
 * - `label_ids`: all that cover it; an alert with a disposition is one.
 * - `sent_label_ids`: without the alerts.
 * - `losses`: amounts by currency.
 * - the columns of the session in `sessions`: what is not named costs nothing.
 * @param where of rows of any table with a tenant, such as `tenant_id = {tenant:String}`
 */
export const toLabelledSessionsSql = (where = 'true'): string => `
  select
    tenant_id, device_id, session_id, min(started_at) as started_at,
    if(${isFraud('max(rank)')}, 'fraud', 'legitimate') as outcome,
    argMax(label, tuple(own_rank, created_at, seq)) as label,
    argMax(occurred_at, tuple(own_rank, created_at, seq)) as occurred_at,
    minIf(created_at, own_rank % 2 = rank % 2) as labelled_at,
    argMax(created_at, tuple(own_rank, created_at, seq)) as latest_labelled_at,
    arraySort(groupUniqArray(label_id)) as label_ids,
    groupUniqArrayIf(label_id, seq > 0) as sent_label_ids,
    sumMapIf(map(currency, toDecimal128(amount, 4)), has_loss) as losses,
    any(last_seen_at) as last_seen_at, any(users) as users, any(verdict) as verdict,
    any(risk) as risk, any(client) as client
  from (
    select
      *,
      currency != '' and ${isFraud('own_rank')} and ${isFraud('rank')} and row_number() over (
        partition by tenant_id, if(external_id = '', label_id, concat('external ', external_id))
        order by ${isFraud('own_rank')} and ${isFraud('rank')} desc, seq desc, started_at desc,
          device_id desc, session_id desc
      ) = 1 as has_loss
    from (${toCoveredSessionsSql(where)})
  )
  group by tenant_id, device_id, session_id`
