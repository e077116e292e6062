/**
 * The target of hostile input: an edge in its own process with a real nats-server, tenants in every
 * state, and good traffic. The whole stream is read back at the end.
 */
import { randomBytes } from 'node:crypto'
import type { Nats } from '#shared/io/nats/connection.ts'
import { createRawClient, type RawAnswer, type RawClient } from '../../support/http/raw-http.ts'
import { type EdgeRig, type SpawnedEdge, startEdgeRig } from '../../support/telemetry/edge-rig.ts'
import type { HostileCase, Signer } from '../../support/telemetry/raw-submissions.ts'
import { readEvents } from '../../support/telemetry/read-stream.ts'
import vectors from '../../vectors/signatures.json' with { type: 'json' }
import { makeSmugglingCases } from './framing.ts'
import { startTraffic, type Traffic, type TrafficResult } from './good-traffic.ts'

/** Tenants whose ids have equal length, and so their requests. */
export type Tenants = {
  acme: Signer
  globex: Signer
  suspended: Signer
  /** Between two secrets: no signature is valid. */
  keyless: Signer
  /** Not projected. */
  unknown: Signer
  /** The tenant and secret of the golden vectors. */
  golden: Signer
}

export type HostileRig = {
  rig: EdgeRig
  edge: SpawnedEdge
  port: number
  tenants: Tenants
  traffic: Traffic
  client: RawClient
  /** Cases with a connection of their own: smuggling, broken request lines. */
  singles: HostileCase[]
  /** Event ids with a 200. */
  accepted: Set<string>
  /** Adds the accepted events of good traffic. @returns its argument */
  note: (result: TrafficResult) => TrafficResult
  stop: () => Promise<void>
}

const clientConnections = 12

/** @param options.syncAlways of nats-server; production's setting by default */
export async function startHostileRig(options: { syncAlways?: boolean } = {}): Promise<HostileRig> {
  const rig = await startEdgeRig(options)
  try {
    const tenants = await projectTenants(rig)
    const edge = await rig.spawnEdge()
    const port = Number(new URL(edge.url).port)
    const traffic = await startTraffic(port, tenants.acme)
    const client = createRawClient(port, clientConnections)
    const accepted = new Set<string>()
    return {
      rig,
      edge,
      port,
      tenants,
      traffic,
      client,
      accepted,
      singles: makeSmugglingCases(tenants.acme),
      note: (result) => {
        for (const eventId of result.eventIds) accepted.add(eventId)
        return result
      },
      stop: async () => {
        client.close()
        await traffic.end()
        await rig.stop()
      },
    }
  } catch (error) {
    await rig.stop()
    throw error
  }
}

async function projectTenants(rig: EdgeRig): Promise<Tenants> {
  const project = async (tenantId: string, change: Parameters<EdgeRig['projectTenant']>[1] = {}) =>
    (({ secret }) => ({ tenantId, secret }))(await rig.projectTenant(tenantId, change))
  const { secret } = vectors.wrong_spellings
  return {
    acme: await project('acme-1'),
    globex: await project('globex'),
    suspended: await project('asleep', { status: 'suspended' }),
    // Its clients still sign with an old secret.
    keyless: {
      ...(await project('nokeys', { secret: null })),
      secret: randomBytes(32).toString('base64url'),
    },
    unknown: { tenantId: 'nobody', secret: randomBytes(32).toString('base64url') },
    golden: await project('acme', { secret }),
  }
}

/** A hostile request with a wrong response. */
export type Breach = { family: string; name: string; got: string }

/** Checks the status and the problem body of a response. @returns null when it is correct */
function judgeAnswer(one: HostileCase, { status, text }: RawAnswer): Breach | null {
  const breach = (got: string) => ({ family: one.family, name: one.name, got })
  if (!one.expected.includes(status)) return breach(`${status}, not ${one.expected.join(' or ')}`)
  if (status < 400) return null
  const body = text.slice(text.indexOf('\r\n\r\n') + 4)
  try {
    const problem = JSON.parse(Buffer.from(body, 'latin1').toString()) as {
      status: number
      errors?: { path: string }[]
    }
    if (problem.status !== status) return breach(`a problem of ${problem.status}`)
    const { path } = one
    const named = path === undefined || problem.errors?.some((at) => at.path.startsWith(path))
    if (status === 400 && !named) return breach(`no error at ${path}: ${body.slice(0, 200)}`)
  } catch {
    return breach(`no problem body: ${body.slice(0, 100)}`)
  }
  return null
}

/** Sends all cases, several at a time. @returns the wrong responses */
export async function sendAll(
  { client, accepted }: Pick<HostileRig, 'client' | 'accepted'>,
  cases: readonly HostileCase[],
): Promise<{ breaches: Breach[]; statuses: Map<number, number> }> {
  const breaches: Breach[] = []
  const statuses = new Map<number, number>()
  let next = 0
  const sender = async () => {
    for (let one = cases[next++]; one !== undefined; one = cases[next++]) {
      const answer = await client.send(one.request)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      const breach = judgeAnswer(one, answer)
      if (breach !== null) breaches.push(breach)
      // A damaged body that is still a valid submission may be accepted, and must then be stored.
      const [, eventId] = /"event_id":"([^"]+)"/.exec(answer.text) ?? []
      if (eventId !== undefined && one.expected.includes(200)) accepted.add(eventId)
    }
  }
  await Promise.all(Array.from({ length: clientConnections }, sender))
  return { breaches, statuses }
}

export type StoredCheck = {
  stored: number
  /** Accepted and not in the stream. */
  lost: string[]
  /** In the stream without a 200, or under another tenant than that of the body. */
  foreign: { eventId: string; tenantId: string; deviceId: string }[]
}

/** Reads the whole stream and compares it with what was accepted. */
export async function checkStored(nats: Nats, accepted: ReadonlySet<string>): Promise<StoredCheck> {
  const events = await readEvents(nats)
  const ids = new Set(events.map((event) => event.event_id))
  const foreign = events.filter(
    (event) => !accepted.has(event.event_id) || event.body.tenant_id !== event.tenant_id,
  )
  return {
    stored: ids.size,
    lost: [...accepted].filter((eventId) => !ids.has(eventId)),
    foreign: foreign.map(({ event_id: eventId, tenant_id: tenantId, body }) => ({
      eventId,
      tenantId,
      deviceId: body.device_id,
    })),
  }
}
