/**
 * Checks that each 200 was written after the sync of its event, from the system calls of one
 * nats-server and one edge. The response has the event's id, the publish the batch of the event,
 * the store's write the batch, and the acknowledgement the publish.
 */
import { readStrings, readTarget, type SystemCall } from './system-calls.ts'

export type OrderFindings = {
  /** Responses of 200, batches and syncs. */
  answers: number
  batches: number
  syncs: number
  /** Event ids of responses without a chain of calls. */
  unexplained: string[]
  /** Event ids whose response or acknowledgement began before the end of the sync. */
  early: string[]
  /** The minimum time from the end of a sync to the start of its response. */
  closestMs: number
  /** The same, to the start of nats-server's acknowledgement. */
  closestAckMs: number
  /** Syncs during which another call of these processes ended. */
  interleaved: number
}

type Moment = { at: number; ms: number }

type Batch = {
  id: string
  events: string[]
  /** The end of the store's write. */
  written?: { path: string; at: number }
  /** The end of the first sync of that file that began after it. */
  synced?: Moment
  /** The start of the acknowledgement's write, and the end of its read. */
  acked?: Moment
  read?: number
}

/** @param ports on which the two processes listen, which identify the sides of a socket */
export async function judgeOrder(
  calls: AsyncIterable<SystemCall>,
  ports: { nats: number; edge: number },
): Promise<OrderFindings> {
  const facts = createFacts(ports)
  for await (const call of calls) facts.note(call)
  return facts.judge()
}

const publishTokens = /HPUB telemetry\S* (\S+)|Nats-Msg-Id: (bat_[\w-]+)|"event_id":"(evt_[\w-]+)"/g
const batchToken = /Nats-Msg-Id: (bat_[\w-]+)/g
const ackToken = /MSG (\S+) \d+ (?:\d+ )?\d+\r\n\{"stream":"TELEMETRY","seq":\d+/g
const answerToken = /HTTP\/1\.1 200 [^{]*\{[^}]*"event_id":"(evt_[\w-]+)"/g
/** The number of earlier characters of a socket that are kept: more than any token has. */
const tailCharacters = 400

function createFacts({ nats, edge }: { nats: number; edge: number }) {
  const batches = new Map<string, Batch>()
  const byReply = new Map<string, Batch>()
  const byEvent = new Map<string, Batch>()
  const unsynced = new Map<string, Batch[]>()
  const answers: { eventId: string; begun: Moment }[] = []
  const tails = new Map<string, string>()
  let publishing: { reply: string; batch: Batch | null } = { reply: '', batch: null }
  let syncs = 0
  let interleaved = 0

  const batchOf = (id: string) => {
    const batch = batches.get(id) ?? { id, events: [] }
    batches.set(id, batch)
    return batch
  }
  const notePublish = (text: string) => {
    for (const [, reply, id, eventId] of text.matchAll(publishTokens)) {
      if (reply !== undefined) publishing = { reply, batch: null }
      if (id !== undefined) {
        const batch = batchOf(id)
        publishing.batch = batch
        byReply.set(publishing.reply, batch)
      }
      if (eventId !== undefined && publishing.batch !== null) {
        publishing.batch.events.push(eventId)
        byEvent.set(eventId, publishing.batch)
      }
    }
  }
  const noteStored = (path: string, text: string, ended: number) => {
    for (const [, id] of text.matchAll(batchToken)) {
      const batch = batchOf(id!)
      batch.written = { path, at: ended }
      unsynced.set(path, [...(unsynced.get(path) ?? []), batch])
    }
  }
  const noteSync = (path: string, call: SystemCall) => {
    syncs++
    if (call.ended > call.begun) interleaved++
    const waiting = unsynced.get(path) ?? []
    for (const batch of waiting) {
      if (batch.written!.at < call.begun) batch.synced = { at: call.ended, ms: call.endedMs }
    }
    const rest = waiting.filter((batch) => batch.synced === undefined)
    unsynced.set(path, rest)
  }
  /** Joined with earlier bytes of this socket, in case a token is split. */
  const joined = (key: string, text: string) => {
    const whole = (tails.get(key) ?? '') + text
    tails.set(key, whole.slice(-tailCharacters))
    return whole
  }
  const noteSocket = (target: string, call: SystemCall) => {
    const reads = call.name.startsWith('read') || call.name.startsWith('recv')
    const text = readStrings(call.args).join('')
    if (target.endsWith(`:${nats}]`)) {
      if (!reads) notePublish(text)
      else {
        for (const [, reply] of joined(`read ${target}`, text).matchAll(ackToken)) {
          const batch = byReply.get(reply!)
          if (batch !== undefined) batch.read ??= call.ended
        }
      }
    } else if (target.includes(`:${nats}->`) && !reads) {
      for (const [, reply] of joined(`ack ${target}`, text).matchAll(ackToken)) {
        const batch = byReply.get(reply!)
        if (batch !== undefined) batch.acked ??= { at: call.begun, ms: call.begunMs }
      }
    } else if (target.includes(`:${edge}->`) && !reads) {
      for (const [, eventId] of text.matchAll(answerToken)) {
        answers.push({ eventId: eventId!, begun: { at: call.begun, ms: call.begunMs } })
      }
    }
  }
  return {
    note: (call: SystemCall) => {
      const { target } = readTarget(call.args) ?? {}
      if (target === undefined || call.result < 0) return
      if (target.startsWith('TCP:')) noteSocket(target, call)
      else if (/^f(data)?sync$/.test(call.name)) noteSync(target, call)
      else if (/^p?write/.test(call.name) && target.endsWith('.blk')) {
        noteStored(target, readStrings(call.args).join(''), call.ended)
      }
    },
    judge: () => judge({ answers, byEvent, batches: batches.size, syncs, interleaved }),
  }
}

function judge(facts: {
  answers: readonly { eventId: string; begun: Moment }[]
  byEvent: ReadonlyMap<string, Batch>
  batches: number
  syncs: number
  interleaved: number
}): OrderFindings {
  const { answers, byEvent, ...counts } = facts
  const findings: OrderFindings = {
    ...counts,
    answers: answers.length,
    unexplained: [],
    early: [],
    closestMs: Number.POSITIVE_INFINITY,
    closestAckMs: Number.POSITIVE_INFINITY,
  }
  for (const { eventId, begun } of answers) {
    const { written, synced, acked, read } = byEvent.get(eventId) ?? {}
    if (written === undefined || acked === undefined || read === undefined) {
      findings.unexplained.push(eventId)
    } else if (synced === undefined || synced.at >= acked.at || read >= begun.at) {
      findings.early.push(eventId)
    } else {
      findings.closestMs = Math.min(findings.closestMs, begun.ms - synced.ms)
      findings.closestAckMs = Math.min(findings.closestAckMs, acked.ms - synced.ms)
    }
  }
  return findings
}
