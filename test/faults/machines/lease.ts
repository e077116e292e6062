/**
 * Three edges and a console that rotates the secret of one tenant, over a model of the tenants
 * bucket. The lease and the verification are real. Announcements are lost, a watch is late or
 * restarts, an edge is paused within a request, and the console's list of edges is late or
 * incomplete. After a rotation no request signed with an older secret is accepted, and never two
 * secrets at a time.
 */
import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { leaseMarginMs, leaseMs } from '#shared/core/base/limits/tenants.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import { createEdgeLease, type EdgeLease } from '#shared/io/tenants/directory/edge-lease.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { decoyRoot, noInstalls } from '../../support/installs/install-roots.ts'
import {
  anyCommands,
  type Commands,
  demand,
  type MachineOptions,
  type MachineReport,
  type Note,
  raceCommands,
  runMachine,
  toCommand,
} from './run-machine.ts'

/** An entry of the bucket: the active secret (null: none), an announcement, or a mark. */
type Entry = { revision: number } & (
  | { secret: number | null }
  | { edge: number; applied: number }
  | { mark: number }
)
/** The bucket keeps the last entry of a key. */
const keyOfEntry = (entry: Entry): string => {
  if ('secret' in entry) return 'tenant'
  return 'edge' in entry ? `edge ${entry.edge}` : 'mark'
}
type Edge = {
  lease: EdgeLease
  /** Entries that its watch has not delivered yet. */
  queue: Entry[]
  staging: number | null
  active: () => number | null
  activate: (read: () => number | null) => void
}

/** A rotation: the old secret is revoked at every edge, then the new one becomes active. */
type Rotation = { phase: 'off' | 'on'; revision: number; mark: number; startMs: number }

const edgeCount = 3
const pauseParts = 8
const tenantId = 'acme'
const body = Buffer.from(
  JSON.stringify({
    tenant_id: tenantId,
    device_id: 'device-1',
    session_id: 'session-1',
    sdk_meta: { sdk_version: '1', platform: 'ios', batch_type: 'x' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
  }),
)
const policy = {
  hash: 'p',
  thresholds: defaultPolicy.thresholds,
  score: compilePolicy(defaultPolicy),
}
const keyOf = (secret: number) => createSecretKey(Buffer.from(`secret-${secret}`.padEnd(43, '-')))

function tenantWith(secret: number | null): Tenant {
  return {
    tenantId,
    environment: 'live',
    status: 'active',
    epoch: 1,
    retired: null,
    limiter: null,
    byteLimiter: null,
    undecidedShare: 0.25,
    telemetryStream: 1,
    ingestAnswer: 'full',
    clientAddress: 'connection',
    isAddressStored: false,
    addressKey: null,
    lists: { usable: () => true, find: () => [], findOfConnection: () => [] },
    policyVersion: 1,
    policyHash: 'p',
    policy,
    fault: null,
    ...noInstalls,
    key: secret === null ? null : keyOf(secret),
  }
}

type Chance = { isLost: () => boolean; pauseMs: () => number }

function createHistory(scheduler: fc.Scheduler, chance: Chance, note: Note) {
  let nowMs = 0
  const log: Entry[] = [{ revision: 1, secret: 0 }]
  const edges: Edge[] = []
  /** The console's own watch: its position, and the announcement of each edge so far. */
  let listed = 0
  const announcements = new Map<number, number>()
  /** The edges with an announcement when the mark arrived; null before. */
  let announced: Set<number> | null = null
  let rotation: Rotation | null = null
  let newest = 0
  let accepted = 0
  const turn = (what: string) => scheduler.schedule(Promise.resolve(), what)
  const append = (entry: Omit<Entry, 'revision'>): number => {
    const full = { ...entry, revision: log.length + 1 } as Entry
    log.push(full)
    for (const edge of edges) {
      edge.queue = [...edge.queue.filter((one) => keyOfEntry(one) !== keyOfEntry(full)), full]
    }
    return full.revision
  }
  /**
   * The bucket keeps the last entry of each key; an entry that is replaced before delivery never
   * arrives.
   */
  const receiveEntry = (revision: number) => {
    const entry = log[revision - 1]!
    const replaced = (later: Entry) =>
      'edge' in later && 'edge' in entry && later.edge === entry.edge
    if ('edge' in entry && !log.slice(revision).some(replaced)) {
      announcements.set(entry.edge, entry.applied)
    }
  }
  const createEdge = (id: number): Edge => {
    let active: () => number | null = () => null
    const edge: Edge = {
      queue: [],
      staging: null,
      active: () => active(),
      activate: (read) => {
        active = read
      },
      lease: createEdgeLease({
        announce: async (applied) => {
          await turn(`announce ${id}`)
          const revision = append({ edge: id, applied } as never)
          await turn(`acknowledge ${id}`)
          if (!chance.isLost()) return revision
          note('announcement without an acknowledgement')
          throw new Error('lost')
        },
        onCurrent: () => edge.activate(() => edge.staging),
        onAnnounced: () => undefined,
        nowMs: () => nowMs,
        leaseMs,
      }),
    }
    return edge
  }
  const watch = (edge: Edge) => {
    const last = edge.active()
    // The active secret stays until the new watch is current.
    edge.activate(() => last)
    const newest = new Map(log.map((entry) => [keyOfEntry(entry), entry]))
    edge.queue = [...newest.values()].sort((a, b) => a.revision - b.revision)
    edge.staging = null
    edge.lease.restart()
    edge.lease.announceChange()
  }
  const beginPhase = (phase: Rotation['phase']) => {
    // Each wait starts a new watch.
    listed = 0
    announcements.clear()
    announced = null
    const secret = phase === 'off' ? null : newest + 1
    const revision = append({ secret } as never)
    rotation = { phase, revision, mark: append({ mark: revision } as never), startMs: nowMs }
  }
  /**
   * Like `awaitEdges`: every edge has confirmed, as seen beyond the mark, or its lease has ended.
   */
  const step = () => {
    if (rotation === null) return
    const { phase, revision, mark, startMs } = rotation
    if (announced === null && listed >= mark) {
      announced = new Set(log.flatMap((one) => ('edge' in one ? one.edge : [])))
      if (announced.size > announcements.size) note('announced again as the mark came')
    }
    const complete = announced !== null && [...announced].every((edge) => announcements.has(edge))
    const confirmed =
      complete && [...announcements.values()].every((applied) => applied >= revision)
    if (!confirmed && nowMs < startMs + leaseMs + leaseMarginMs) return
    note(confirmed ? 'rotation confirmed by every edge' : 'rotation that outlasted a lease')
    if (phase === 'off') return beginPhase('on')
    newest++
    rotation = null
  }
  for (let id = 0; id < edgeCount; id++) edges.push(createEdge(id))
  for (const edge of edges) watch(edge)
  return {
    renew: (at: number) => edges[at]!.lease.renew(),
    rewatch: (at: number) => watch(edges[at]!),
    deliver: (at: number, count: number) => {
      const edge = edges[at]!
      for (let left = count; left > 0 && edge.queue.length > 0; left--) {
        const entry = edge.queue.shift()!
        if ('secret' in entry) edge.staging = entry.secret
        // Only a copy that was read to the end has all that came before.
        if (edge.queue.length === 0) edge.lease.applied(entry.revision)
        if ('secret' in entry) edge.lease.announceChange()
      }
    },
    list: (count: number) => {
      for (const to = Math.min(log.length, listed + count); listed < to; ) receiveEntry(++listed)
      step()
    },
    pass: (ms: number) => {
      nowMs += ms
      step()
    },
    rotate: () => {
      if (rotation === null) beginPhase('off')
    },
    send: (at: number, age: number) => {
      const edge = edges[at]!
      const secret = Math.max(0, newest + 1 - age)
      const decision = decideSubmission(
        body,
        { signature: signBody(body, keyOf(secret)) },
        {
          findTenant: () => tenantWith(edge.active()),
          leaseValid: edge.lease.valid,
          keysKnown: () => true,
          mayWait: () => true,
          shares: { note: () => undefined, take: () => 0 },
          verify: (bytes, header, key) => {
            // A process can be paused anywhere while time passes for the others.
            const pausedMs = chance.pauseMs()
            for (let part = 0; part < pauseParts; part++) {
              nowMs += pausedMs / pauseParts
              step()
            }
            return verifySignature(bytes, header, key)
          },
          decoyKey: keyOf(-1),
          decoyRoot,
          nowMs: () => nowMs,
          wallMs: () => nowMs,
        },
      )
      if (decision.kind === 'refused') {
        note(`refused: ${decision.reason}`)
        return
      }
      note('accepted')
      // Once the old secret is revoked at every edge, no request with it is accepted.
      const oldest = rotation?.phase === 'on' ? newest + 1 : newest
      demand(secret >= oldest, `secret ${secret} was accepted when ${oldest} was the oldest`)
      demand(secret >= accepted, `secret ${secret} was accepted after ${accepted} had been`)
      accepted = Math.max(accepted, secret)
    },
  }
}

type History = ReturnType<typeof createHistory>
const at = fc.nat({ max: edgeCount - 1 })
const count = fc.integer({ min: 1, max: 20 })
const steps = {
  renew: at.map((id) => toCommand<History>(`renew(${id})`, (one) => one.renew(id))),
  rewatch: at.map((id) => toCommand<History>(`rewatch(${id})`, (one) => one.rewatch(id))),
  deliver: fc
    .tuple(at, count)
    .map(([id, n]) => toCommand<History>(`deliver(${id}, ${n})`, (one) => one.deliver(id, n))),
  list: count.map((n) => toCommand<History>(`list(${n})`, (one) => one.list(n))),
  pass: fc
    .integer({ min: 1, max: 400 })
    .map((ms) => toCommand<History>(`pass(${ms})`, (one) => one.pass(ms))),
  rotate: fc.constant(toCommand<History>('rotate', (one) => one.rotate())),
  send: fc
    .tuple(at, fc.nat({ max: 2 }))
    .map(([id, age]) => toCommand<History>(`send(${id}, ${age})`, (one) => one.send(id, age))),
}
const { renew, rewatch, deliver, list, pass, rotate, send } = steps
const commands: fc.Arbitrary<Commands<History>> = anyCommands<History>(
  [
    ...[renew, renew, renew, deliver, deliver, deliver, deliver, deliver, deliver, list, list],
    ...[pass, rotate, rewatch, send, send, send, send],
  ],
  120,
)
const pauses = fc.infiniteStream(fc.constantFrom(0, 0, 0, 0, 0, 0, 30, 900, 2_500, 6_000))

export function runLease(options: MachineOptions): Promise<MachineReport> {
  return runMachine(
    options,
    fc.tuple(fc.scheduler(), commands, fc.infiniteStream(fc.nat({ max: 7 })), pauses),
    async (note, [scheduler, events, losses, pause]) => {
      const chance: Chance = {
        isLost: () => losses.next().value === 0,
        pauseMs: () => pause.next().value as number,
      }
      await raceCommands(scheduler, createHistory(scheduler, chance, note), events)
    },
  )
}
