/**
 * Compares the receiver's requests, the rows in Postgres and the kills with the guarantees of
 * delivery. Pure, and independent of timing: a repeated request is allowed only after a kill that
 * left its delivery claimed by a dead process.
 */
import type { SeenRequest } from './receiver.ts'
import { actStatus, type ReceiverAct } from './receiver-faults.ts'

export type RaisedDelivery = { alertId: string; deliveryId: string }

export type AttemptRow = { attempt: number; status: number | null; errorKind: string | null }

/** A delivery in Postgres at the end. */
export type StoredDelivery = {
  deliveryId: string
  state: string
  attempts: number
  /** Base64, of the bytes that every attempt must send. */
  sha256: string
  /** In the order of attempts. */
  records: AttemptRow[]
}

export type Kill = {
  /**
   * Just before the signal, and when all work of the process had ended in Postgres and at the
   * receiver.
   */
  sentMs: number
  settledMs: number
  /**
   * Deliveries that this kill left claimed and no earlier one did. With two processes: all claimed
   * ones, because those of the other process look the same.
   */
  orphans: ReadonlySet<string>
}

export type Evidence = {
  raised: readonly RaisedDelivery[]
  /** In the order of arrival. */
  requests: readonly SeenRequest[]
  stored: readonly StoredDelivery[]
  kills: readonly Kill[]
}

/** Breaches: each list must be empty. */
export type Breaches = {
  /** Alerts whose delivery does not exist or was never answered with a 2xx. */
  missing: RaisedDelivery[]
  /** Deliveries that did not end `delivered`. */
  undelivered: StoredDelivery[]
  /** Requests for an unknown delivery, or with bytes other than its own. */
  otherBytes: SeenRequest[]
  /** Requests whose signatures do not verify. */
  forged: SeenRequest[]
  /** Requests with a lower attempt number than an earlier one. */
  decreasing: SeenRequest[]
  /** Deliveries whose recorded attempts are not 1, 2, ... up to the one 2xx that ended them. */
  gaps: StoredDelivery[]
  /** Recorded attempts that do not match their last request, with all their requests. */
  unfounded: { deliveryId: string; record: AttemptRow; tries: SeenRequest[] }[]
  /** Requests whose attempt was never recorded. */
  unrecorded: SeenRequest[]
  /**
   * Attempts sent again without a kill that left their claim, or a reused connection that was
   * closed.
   */
  unexplained: SeenRequest[]
  /** Requests after a 2xx that was written and recorded, or without such a kill. */
  afterSuccess: SeenRequest[]
}

export type Findings = {
  breaches: Breaches
  /** Requests that repeat an attempt after a kill; those of them after a complete 2xx. */
  repeats: number
  repeatsAfterSuccess: number
  /** Deliveries left claimed by killed processes, over all kills: the bound of the two above. */
  orphans: number
  /** Unanswered requests at the kill of the process, over all kills; kills with such requests. */
  openAtKills: number
  killsThatMet: number
  acts: Partial<Record<ReceiverAct, number>>
  /** Responses of which sender and receiver may know different outcomes. */
  unknown: Record<UnknownOutcome, number>
  /** Recorded attempts that never reached the receiver, by error kind. */
  unseen: Record<string, number>
  signaturesVerified: number
  attemptsRecorded: number
}

export type UnknownOutcome =
  | 'cut in its body, recorded as 200'
  | 'cut in its body, recorded as a failure'
  | 'cut in its body, sent again after a kill'
  | 'complete 200, recorded as a failure'

/** Compares everything. */
export function checkDeliveries({ raised, requests, stored, kills }: Evidence): Findings {
  const rows = new Map(stored.map((row) => [row.deliveryId, row]))
  const byDelivery = Map.groupBy(requests, ({ deliveryId }) => deliveryId)
  const requestsOf = (deliveryId: string) => byDelivery.get(deliveryId) ?? []
  const histories = [...byDelivery].map(([id, seen]) => readHistory(seen, rows.get(id), kills))
  const openAt = kills.map(({ sentMs }) => countOpen(requests, sentMs))
  const acts: Findings['acts'] = {}
  for (const { act } of requests) acts[act] = (acts[act] ?? 0) + 1
  const matched = stored.map((row) => matchRecords(row, requestsOf(row.deliveryId)))
  const unknown = countAll(matched.flatMap((one) => one.unknown))
  return {
    breaches: {
      missing: raised.filter(
        ({ deliveryId }) => !rows.has(deliveryId) || !requestsOf(deliveryId).some(isAccepted),
      ),
      undelivered: stored.filter(({ state }) => state !== 'delivered'),
      otherBytes: requests.filter(({ deliveryId, sha256 }) => {
        const row = rows.get(deliveryId)
        return row === undefined || (sha256 !== null && sha256 !== row.sha256)
      }),
      forged: requests.filter(({ genuine }) => genuine === false),
      decreasing: histories.flatMap((one) => one.decreasing),
      gaps: stored.filter((row) => !isGapless(row)),
      unfounded: matched.flatMap((one) => one.unfounded),
      unrecorded: requests.filter(
        ({ deliveryId, attempt }) => !((rows.get(deliveryId)?.attempts ?? 0) >= attempt),
      ),
      unexplained: histories.flatMap((one) => one.unexplained),
      afterSuccess: histories.flatMap((one) => one.afterSuccess),
    },
    repeats: sum(histories.map((one) => one.repeats)),
    repeatsAfterSuccess: sum(histories.map((one) => one.repeatsAfterSuccess)),
    orphans: sum(kills.map(({ orphans }) => orphans.size)),
    openAtKills: sum(openAt),
    killsThatMet: openAt.filter((count) => count > 0).length,
    acts,
    unknown: { ...noUnknown, ...unknown },
    unseen: countAll(matched.flatMap((one) => one.unseen)),
    signaturesVerified: requests.filter(({ genuine }) => genuine === true).length,
    attemptsRecorded: sum(stored.map(({ records }) => records.length)),
  }
}

const noUnknown: Record<UnknownOutcome, number> = {
  'cut in its body, recorded as 200': 0,
  'cut in its body, recorded as a failure': 0,
  'cut in its body, sent again after a kill': 0,
  'complete 200, recorded as a failure': 0,
}

const sum = (values: number[]) => values.reduce((all, value) => all + value, 0)

function countAll(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

const countOpen = (requests: readonly SeenRequest[], atMs: number) =>
  requests.filter(({ arrivedMs, endedMs }) => arrivedMs <= atMs && endedMs >= atMs).length

/** Whether the sender may count it as delivered: the head of a 2xx was written in full. */
const isAccepted = ({ status }: SeenRequest) => status !== null && status >= 200 && status < 300

type History = Pick<Breaches, 'decreasing' | 'unexplained' | 'afterSuccess'> &
  Pick<Findings, 'repeats' | 'repeatsAfterSuccess'>

/** @param seen all requests of one delivery, in the order of arrival */
function readHistory(
  seen: SeenRequest[],
  row: StoredDelivery | undefined,
  kills: readonly Kill[],
): History {
  const history: History = {
    decreasing: [],
    unexplained: [],
    afterSuccess: [],
    repeats: 0,
    repeatsAfterSuccess: 0,
  }
  let success: SeenRequest | undefined
  for (const [at, request] of seen.entries()) {
    const before = seen[at - 1]
    if (before !== undefined) {
      if (request.attempt < before.attempt) history.decreasing.push(request)
      if (request.attempt === before.attempt && !isRedialled(before, request)) {
        history.repeats += 1
        if (!isOrphaned(before, request, kills)) history.unexplained.push(request)
      }
    }
    if (success !== undefined) {
      // After a kill that undid a success, the repeat decides which requests may follow.
      if (success.attempt !== request.attempt && isUnseen(success, row)) success = undefined
      else if (success.attempt === request.attempt && isOrphaned(success, request, kills)) {
        history.repeatsAfterSuccess += 1
        success = undefined
      } else history.afterSuccess.push(request)
    }
    if (isAccepted(request) && request.complete) success = request
  }
  return history
}

/** Whether a kill between two requests of a delivery left it claimed by the dead process. */
const isOrphaned = (before: SeenRequest, after: SeenRequest, kills: readonly Kill[]) =>
  kills.some(
    ({ sentMs, settledMs, orphans }) =>
      before.arrivedMs <= settledMs && after.arrivedMs >= sentMs && orphans.has(after.deliveryId),
  )

/**
 * Whether a reused connection was closed without an answer, and a fresh one carried the attempt.
 */
const isRedialled = (before: SeenRequest, after: SeenRequest) =>
  before.reused &&
  !after.reused &&
  (before.act === 'reset at head' || before.act === 'reset at body')

/** Whether the sender got no answer although the receiver sent one: its attempt failed. */
const isUnseen = ({ attempt }: SeenRequest, row: StoredDelivery | undefined) =>
  row?.records.find((record) => record.attempt === attempt)?.status === null

function isGapless({ attempts, records }: StoredDelivery): boolean {
  const last = records.at(-1)?.status ?? 0
  const earlier = records.slice(0, -1)
  return (
    attempts === records.length &&
    records.every(({ attempt }, at) => attempt === at + 1) &&
    last >= 200 &&
    last < 300 &&
    earlier.every(({ status }) => status === null || status >= 300)
  )
}

/** Whether a record can be the sender's view of this request. */
function fits({ status, errorKind }: AttemptRow, { act, complete }: SeenRequest): boolean {
  const expected = actStatus[act]
  if (status !== null) return status === expected && (complete || act === 'cut answer')
  // Every response came too late.
  if (errorKind === 'timeout') return true
  if (act === 'hang') return false
  if (expected === undefined || act === 'cut answer') {
    return errorKind === 'reset' || errorKind === 'protocol'
  }
  // The response was lost on the way.
  return errorKind === 'reset'
}

type Matched = {
  unfounded: Breaches['unfounded']
  unknown: UnknownOutcome[]
  unseen: string[]
}

function matchRecords({ deliveryId, records }: StoredDelivery, seen: SeenRequest[]): Matched {
  const matched: Matched = { unfounded: [], unknown: [], unseen: [] }
  for (const record of records) {
    const tries = seen.filter(({ attempt }) => attempt === record.attempt)
    const last = tries.at(-1)
    if (last === undefined && record.status === null) {
      matched.unseen.push(record.errorKind ?? 'none')
    } else if (last === undefined || !fits(record, last)) {
      matched.unfounded.push({ deliveryId, record, tries })
    } else if (last.act === 'cut answer') {
      const how = record.status === null ? 'a failure' : '200'
      matched.unknown.push(`cut in its body, recorded as ${how}`)
    } else if (record.status === null && last.complete && isAccepted(last)) {
      matched.unknown.push('complete 200, recorded as a failure')
    }
    for (const { act, status } of tries.slice(0, -1)) {
      if (act === 'cut answer' && status !== null) {
        matched.unknown.push('cut in its body, sent again after a kill')
      }
    }
  }
  return matched
}
