/**
 * Server-sent events: how many alerts of a tenant are new, and which cases changed. An event of
 * alerts has the tenant's last `seq` as its id, so a client that reconnects with `Last-Event-ID`
 * learns what it missed. One query an interval serves all streams, and one more each tenant whose
 * cases changed. A stream ends with the session or the rights of its
 * operator.
 */
import { PassThrough } from 'node:stream'
import { z } from 'zod'
import {
  alertStreamsMax,
  alertStreamsPerOperatorMax,
  streamHeartbeatMs,
  streamSilenceMs,
} from '#shared/core/base/limits/alerts.ts'
import { Problem, unavailable } from '#shared/core/http/problem.ts'
import { seesTenant } from '#shared/core/operators/roles.ts'
import { isSessionValid } from '#shared/core/operators/session-times.ts'
import { readLastSeqs } from '#shared/io/alerts/alert-work-store.ts'
import { findChangedCases } from '#shared/io/cases/case-changes.ts'
import { findSessions } from '#shared/io/operators/session-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

/** Below the second in which a new alert must be announced. */
const pollMs = 500
/** How often the sessions of open streams are looked at, in one query. */
const sessionsCheckedMs = 2_000
/** A stream ends after this, and the client opens it again: its session is checked anew. */
const streamMs = 5 * 60_000

type Stream = {
  tenantId: string
  actor: string
  /** Null for the bearer of ADMIN_TOKEN. */
  sessionId: string | null
  lastSeq: number
  /** The last `case_seq` that was sent. */
  caseSeq: number
  out: PassThrough
}

/** Adds the route. */
export function addAlertStreamRoute(
  app: ConsoleApp,
  { postgres, log, wallMs }: { postgres: Postgres; log: Log; wallMs: () => number },
): void {
  const streams = new Set<Stream>()
  let poller: Poller | null = null
  let sessionsCheckedAtMs = Number.NEGATIVE_INFINITY
  const endWithoutSession = async (): Promise<void> => {
    const ids = [...streams].flatMap(({ sessionId }) => (sessionId === null ? [] : [sessionId]))
    if (ids.length === 0 || wallMs() - sessionsCheckedAtMs < sessionsCheckedMs) return
    sessionsCheckedAtMs = wallMs()
    const found = await findSessions(postgres, ids)
    const usable = new Map(found.map((one) => [one.session.sessionId, one] as const))
    for (const { sessionId, tenantId, out } of streams) {
      if (sessionId === null || !ids.includes(sessionId)) continue
      const { session, operator } = usable.get(sessionId) ?? {}
      const goesOn =
        session !== undefined &&
        operator?.disabled === false &&
        isSessionValid(session, wallMs()) &&
        seesTenant(operator.tenants, tenantId)
      if (!goesOn) out.end()
    }
  }
  const announce = async (): Promise<void> => {
    const tenantIds = [...new Set([...streams].map((stream) => stream.tenantId))]
    if (tenantIds.length === 0) return
    await endWithoutSession()
    const seqs = await readLastSeqs(postgres, tenantIds)
    for (const stream of streams) send(stream, seqs.get(stream.tenantId)?.last ?? stream.lastSeq)
    for (const [tenantId, { cases }] of seqs) await announceCases(tenantId, cases)
  }
  const announceCases = async (tenantId: string, present: number): Promise<void> => {
    const behind = [...streams].filter(
      (stream) => stream.tenantId === tenantId && stream.caseSeq < present,
    )
    if (behind.length === 0) return
    const from = Math.min(...behind.map(({ caseSeq }) => caseSeq))
    const changed = await findChangedCases(postgres, tenantId, { after: from, upTo: present })
    for (const stream of behind) {
      if (changed.cases.length > 0 || changed.more) {
        stream.out.write(`event: cases\ndata: ${JSON.stringify(changed)}\n\n`)
      }
      stream.caseSeq = present
    }
  }
  app.addHook('preClose', async () => {
    await poller?.stop()
    for (const stream of streams) stream.out.end()
  })
  app.get(
    '/tenants/:tenant_id/alerts/stream',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamAlerts',
        tags: ['Alerts'],
        summary: 'Server-sent events: how many alerts are new, and which cases changed',
        description:
          'Each event `alerts` has `{"new","last_seq"}`; `Last-Event-ID` continues after a lost ' +
          'connection. An event `cases` has `{"cases":[{"case_id","state"}],"more"}`: what changed; ' +
          'with `more`, and after a lost connection, read the list again. Without a `ping` for ' +
          `${streamSilenceMs / 1_000} s the connection is lost.`,
        params: tenantParams,
        querystring: z.strictObject({}),
        response: {
          200: {
            description: 'Server-sent events',
            content: { 'text/event-stream': { schema: z.string() } },
          },
        },
      },
    },
    async ({ params: { tenant_id: tenantId }, headers, principal }, reply) => {
      await requireTenant(postgres, tenantId)
      const seqs = await readLastSeqs(postgres, [tenantId])
      // No other request and no end of the connection comes between here and the close listener.
      if (reply.raw.destroyed) throw unavailable('The client has left.')
      const actor = actorOf(principal)
      const own = [...streams].filter((stream) => stream.actor === actor).length
      if (streams.size >= alertStreamsMax || own >= alertStreamsPerOperatorMax) {
        const detail = 'There are too many streams of alerts.'
        throw new Problem('rate_limited', detail, { retryAfterSeconds: 5 })
      }
      const { last: present, cases: caseSeq } = seqs.get(tenantId) ?? { last: 0, cases: 0 }
      const lastSeq = readLastId(headers['last-event-id'], present)
      const sessionId = principal?.kind === 'operator' ? principal.session.sessionId : null
      const out = new PassThrough()
      const stream: Stream = { tenantId, actor, sessionId, lastSeq, caseSeq, out }
      const heartbeat = setInterval(() => ping(stream), streamHeartbeatMs)
      const forget = () => {
        clearInterval(heartbeat)
        clearTimeout(end)
        streams.delete(stream)
        stream.out.end()
      }
      const end = setTimeout(forget, streamMs)
      stream.out.once('close', forget)
      reply.raw.once('close', forget)
      streams.add(stream)
      poller ??= startPolling(announce, {
        log,
        everyMs: pollMs,
        failure: 'new alerts cannot be announced',
      })
      stream.out.write(
        `retry: 1000\nid: ${lastSeq}\nevent: ready\ndata: {"last_seq":${lastSeq}}\n\n`,
      )
      send(stream, present)
      reply.type('text/event-stream; charset=utf-8')
      reply.header('cache-control', 'no-store')
      reply.header('x-accel-buffering', 'no')
      return reply.send(stream.out as never)
    },
  )
}

/** The `seq` that a client saw last: the present one for a new client or an unknown id. */
function readLastId(header: string | string[] | undefined, present: number): number {
  const seq = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : present
  return Math.min(seq, present)
}

/** A page waits for it: a connection to a process that hangs stays open. */
function ping({ out, lastSeq }: Stream): void {
  out.write(`event: ping\ndata: {"last_seq":${lastSeq}}\n\n`)
}

function send(stream: Stream, lastSeq: number): void {
  if (lastSeq <= stream.lastSeq) return
  const data = JSON.stringify({ new: lastSeq - stream.lastSeq, last_seq: lastSeq })
  stream.out.write(`id: ${lastSeq}\nevent: alerts\ndata: ${data}\n\n`)
  stream.lastSeq = lastSeq
}
