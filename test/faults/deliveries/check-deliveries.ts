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
  /** Kills that left unanswered requests. */
  killsThatMet: number
  acts: Partial<Record<ReceiverAct, number>>
  signaturesVerified: number
}

/** Compares everything. */
export function checkDeliveries({ raised, requests, stored, kills }: Evidence): Findings {
  const rows = new Map(stored.map((row) => [row.deliveryId, row]))
  const byDelivery = Map.groupBy(requests, ({ deliveryId }) => deliveryId)
  const requestsOf = (deliveryId: string) => byDelivery.get(deliveryId) ?? []
  const histories = [...byDelivery].map(([id, seen]) => readHistory(seen, rows.get(id), kills))
  const openAt = kills.map(({ sentMs }) => countOpen(requests, sentMs))
  const acts: Findings['acts'] = {}
  for (const { act } of requests) acts[act] = (acts[act] ?? 0) + 1
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
      unfounded: stored.flatMap((row) => findUnfounded(row, requestsOf(row.deliveryId))),
      unrecorded: requests.filter(
        ({ deliveryId, attempt }) => !((rows.get(deliveryId)?.attempts ?? 0) >= attempt),
      ),
      unexplained: histories.flatMap((one) => one.unexplained),
      afterSuccess: histories.flatMap((one) => one.afterSuccess),
    },
    repeats: sum(histories.map((one) => one.repeats)),
    repeatsAfterSuccess: sum(histories.map((one) => one.repeatsAfterSuccess)),
    orphans: sum(kills.map(({ orphans }) => orphans.size)),
    killsThatMet: openAt.filter((count) => count > 0).length,
    acts,
    signaturesVerified: requests.filter(({ genuine }) => genuine === true).length,
  }
}

const sum = (values: number[]) => values.reduce((all, value) => all + value, 0)

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

/** A record without a response may be of a request that never reached the receiver. */
function findUnfounded(
  { deliveryId, records }: StoredDelivery,
  seen: SeenRequest[],
): Breaches['unfounded'] {
  return records.flatMap((record) => {
    const tries = seen.filter(({ attempt }) => attempt === record.attempt)
    const last = tries.at(-1)
    const isFounded = last === undefined ? record.status === null : fits(record, last)
    return isFounded ? [] : [{ deliveryId, record, tries }]
  })
}
