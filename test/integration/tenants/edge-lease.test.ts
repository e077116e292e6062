/**
 * Rotations under load on several edges, one of them a process that is paused at random. After a
 * rotation no edge accepts a request signed with the old secret, and none rejects the new one with
 * 401.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { leaseMarginMs, leaseMs } from '../../../shared/core/base/limits/tenants.ts'
import { awaitEdges } from '../../../shared/io/tenants/directory/tenant-directory.ts'
import { until } from '../../support/process/until.ts'
import {
  bodyOf,
  type EdgeRig,
  nowMs,
  type SpawnedEdge,
  send,
  startEdgeRig,
  startProxy,
  type TestEdge,
} from '../../support/telemetry/edge-rig.ts'

let rig: EdgeRig
let edges: TestEdge[]
let process3: SpawnedEdge

beforeAll(async () => {
  rig = await startEdgeRig()
  await rig.projectTenant('acme')
  edges = [await rig.startEdge(), await rig.startEdge()]
  process3 = await rig.spawnEdge()
})

afterAll(() => rig.stop())

/** A client's request and its outcome. */
type Attempt = { secret: string; sentMs: number; endedMs: number; status: number }

/**
 * Rotates as the console does: revokes the old secret at every edge before it activates the new
 * one.
 */
async function rotate(epoch: number): Promise<{ secret: string; withoutLease: string[] }> {
  const off = await rig.projectTenant('acme', { epoch, secret: null })
  const { leaseExpired: withoutLease } = await awaitRevision(off.revision)
  const on = await rig.projectTenant('acme', { epoch: epoch + 1 })
  withoutLease.push(...(await awaitRevision(on.revision)).leaseExpired)
  return { secret: on.secret, withoutLease }
}

const awaitRevision = (revision: number) =>
  awaitEdges({
    nats: rig.nats,
    sealer: rig.sealer,
    revision,
    nowMs,
    leaseMs,
    marginMs: leaseMarginMs,
  })

/** Sends with the newest and with older secrets to every edge, until it is stopped. */
function startLoad(secrets: string[]) {
  const attempts: Attempt[] = []
  const urls = [...edges.map(({ url }) => url), process3.url]
  let running = true
  const client = async (url: string, choose: () => string) => {
    while (running) {
      const secret = choose()
      const sentMs = nowMs()
      const { status } = await send({ url }, bodyOf('acme'), { secret })
      attempts.push({ secret, sentMs, endedMs: nowMs(), status })
      await pause(5)
    }
  }
  const newest = () => secrets.at(-1)!
  let requests = 0
  const older = () => secrets[Math.max(0, secrets.length - 1 - (requests++ % 3))]!
  const clients = urls.flatMap((url) => [client(url, newest), client(url, older)])
  const stop = async () => {
    running = false
    await Promise.all(clients)
    return attempts
  }
  return { attempts, stop }
}

describe('rotation', () => {
  it('never leaves two secrets valid, even with a paused edge', async () => {
    const first = await rig.projectTenant('acme', { epoch: 2 })
    await awaitRevision(first.revision)
    const secrets = [first.secret]
    /** When the rotation of each secret had returned. */
    const deadFromMs = new Map<string, number>()
    const offFromMs = new Map<string, number>()
    const liveFromMs = new Map([[first.secret, nowMs()]])
    /** Of rotations with all edges healthy: how many edges had no lease any more. */
    const waits: number[] = []
    const load = startLoad(secrets)
    const { pid } = process3.child
    for (let round = 0; round < 12; round++) {
      const before = load.attempts.length
      await until('telemetry flows', () => load.attempts.length > before + 30)
      const paused = round % 4 === 1
      if (paused) process.kill(pid!, 'SIGSTOP')
      offFromMs.set(secrets.at(-1)!, nowMs())
      const { secret, withoutLease } = await rotate(10 + 2 * round)
      const returnedMs = nowMs()
      deadFromMs.set(secrets.at(-1)!, returnedMs)
      liveFromMs.set(secret, returnedMs)
      secrets.push(secret)
      if (!paused) waits.push(withoutLease.length)
      else {
        process.kill(pid!, 'SIGCONT')
        expect(withoutLease.length).toBeGreaterThan(0)
      }
    }
    const attempts = await load.stop()

    const late = attempts.filter(({ secret, sentMs, status }) => {
      return status === 200 && sentMs > (deadFromMs.get(secret) ?? Number.POSITIVE_INFINITY)
    })
    expect(late).toEqual([])
    const refused = attempts.filter(({ secret, sentMs, endedMs, status }) => {
      const offMs = offFromMs.get(secret) ?? Number.POSITIVE_INFINITY
      const isLive = sentMs > liveFromMs.get(secret)! && endedMs < offMs
      return isLive && status !== 200 && status !== 503
    })
    expect(refused).toEqual([])
    const statuses = new Map<number, number>()
    for (const { status } of attempts) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    expect([...statuses.keys()].sort()).toEqual([200, 401, 503])
    expect(statuses.get(200)).toBeGreaterThan(30)
    expect(statuses.get(401)).toBeGreaterThan(30)
    // With all edges healthy no lease has to end first. A machine that stalls can end one.
    expect(waits).toContain(0)
  })

  it('is safe with a disconnected edge, which serves again afterwards', async () => {
    const proxy = await startProxy(rig.server.url)
    const edge = await rig.startEdge({ natsUrl: proxy.url })
    const old = await rig.projectTenant('acme', { epoch: 500 })
    await until('the edge knows the secret', () => edge.directory.revision() >= old.revision)
    const sendWith = async (secret: string) => (await send(edge, bodyOf('acme'), { secret })).status
    expect(await sendWith(old.secret)).toBe(200)
    proxy.freeze()
    const startMs = nowMs()
    const { secret, withoutLease } = await rotate(510)
    expect(withoutLease).toContain(edge.edgeId)
    expect(nowMs() - startMs).toBeGreaterThan(leaseMs / 2)
    for (let at = 0; at < 20; at++) {
      expect(await sendWith(old.secret)).toBe(503)
      expect(await sendWith(secret)).toBe(503)
    }
    proxy.thaw()
    const statuses = new Set<number>()
    await until('the edge serves again', async () => {
      statuses.add(await sendWith(old.secret))
      return (await sendWith(secret)) === 200
    })
    expect(statuses).not.toContain(200)
    expect(await sendWith(old.secret)).toBe(401)
    await edge.close()
    proxy.close()
  })

  it('stamps each event with the epoch of its secret', async () => {
    const tenant = await rig.projectTenant('acme', { epoch: 1_000 })
    await awaitRevision(tenant.revision)
    const answer = await send(process3, bodyOf('acme'), { secret: tenant.secret })
    expect(answer.status).toBe(200)
    const events = await rig.readStored()
    const event = events.find(({ event_id: id }) => id === answer.body.event_id)
    expect(event?.epoch).toBe(1_000)
  })
})
