/**
 * Checks that each 200 was written after the sync of its event, from the system calls of one
 * nats-server and one edge: a write of the store has the event's id, a sync of that file that began
 * after it makes it durable, and the response, which has the id too, begins after that.
 */
import { readStrings, readTarget, type SystemCall } from './system-calls.ts'

export type OrderFindings = {
  /** Responses of 200, and syncs. */
  answers: number
  syncs: number
  /** Event ids of responses whose event no write of the store had. */
  unexplained: string[]
  /** Event ids whose response began before the end of the sync. */
  early: string[]
  /** The minimum time from the end of a sync to the start of its response. */
  closestMs: number
  /** Syncs during which another call of these processes ended. */
  interleaved: number
}

const eventToken = /"event_id":"(evt_[\w-]+)"/g
const answerToken = /HTTP\/1\.1 200 [^{]*\{[^}]*"event_id":"(evt_[\w-]+)"/g
/** The number of earlier characters of a file that are kept: a write may end within an id. */
const tailCharacters = 100

/** @param edgePort on which the edge listens, which identifies its side of a socket */
export async function judgeOrder(
  calls: AsyncIterable<SystemCall>,
  edgePort: number,
): Promise<OrderFindings> {
  const findings: OrderFindings = {
    answers: 0,
    syncs: 0,
    unexplained: [],
    early: [],
    closestMs: Number.POSITIVE_INFINITY,
    interleaved: 0,
  }
  /** By file: the end of what was written, and the events in it that were not synced since. */
  const tails = new Map<string, string>()
  const waiting = new Map<string, Map<string, number>>()
  const synced = new Map<string, { at: number; ms: number } | null>()
  const noteWrite = (path: string, call: SystemCall) => {
    const text = (tails.get(path) ?? '') + readStrings(call.args).join('')
    tails.set(path, text.slice(-tailCharacters))
    const own = waiting.get(path) ?? new Map<string, number>()
    waiting.set(path, own)
    for (const [, eventId] of text.matchAll(eventToken)) {
      if (synced.has(eventId!)) continue
      own.set(eventId!, call.ended)
      synced.set(eventId!, null)
    }
  }
  const noteSync = (path: string, call: SystemCall) => {
    findings.syncs++
    if (call.ended > call.begun) findings.interleaved++
    const own = waiting.get(path) ?? new Map<string, number>()
    for (const [eventId, writtenAt] of own) {
      if (writtenAt >= call.begun) continue
      synced.set(eventId, { at: call.ended, ms: call.endedMs })
      own.delete(eventId)
    }
  }
  const noteAnswer = (eventId: string, call: SystemCall) => {
    findings.answers++
    const sync = synced.get(eventId)
    if (sync === undefined) findings.unexplained.push(eventId)
    else if (sync === null || sync.at >= call.begun) findings.early.push(eventId)
    else findings.closestMs = Math.min(findings.closestMs, call.begunMs - sync.ms)
  }
  for await (const call of calls) {
    const { target } = readTarget(call.args) ?? {}
    if (target === undefined || call.result < 0) continue
    if (/^f(data)?sync$/.test(call.name)) noteSync(target, call)
    else if (/^p?write/.test(call.name) && target.endsWith('.blk')) noteWrite(target, call)
    else if (/^(write|send)/.test(call.name) && target.includes(`:${edgePort}->`)) {
      const text = readStrings(call.args).join('')
      for (const [, eventId] of text.matchAll(answerToken)) noteAnswer(eventId!, call)
    }
  }
  return findings
}
