// `di move-nats` between two nats-servers: what it waits for, copies and refuses. The whole move,
// to three servers under load, is in test/long/faults/grow-cluster.test.ts.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  acceptedBucket,
  deadLetterStream,
  deadLetterSubject,
  deciderConsumer,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { edgeKey } from '#shared/core/tenants/directory-entries.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { openAcceptedBucket, openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { runCommand } from '../../../services/console/cli/program.ts'
import { startWhole } from '../../support/process/closing.ts'
import { runDi } from '../../support/process/command-line.ts'
import { until } from '../../support/process/until.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

type Rig = { servers: [TestNats, TestNats]; old: Nats; next: Nats; postgres: TestPostgres }

let rig: Rig & { stop: () => Promise<void> }
beforeAll(async () => {
  rig = await startWhole(async (closing, stop) => {
    const [from, to, postgres] = await Promise.all([startNats(), startNats(), startPostgres()])
    closing.push(from.stop, to.stop, postgres.stop)
    const old = await connectNats(from.url, 'test', quietLog)
    const next = await connectNats(to.url, 'test', quietLog)
    closing.push(old.close, next.close)
    await ensureStreams(old)
    return { servers: [from, to], old, next, postgres, stop }
  })
})
afterAll(() => rig?.stop())

/** @param write gets what it prints, at once */
async function finish(
  { servers: [from, to] }: Rig,
  { toUrl = to.url, write = () => undefined }: { toUrl?: string; write?: (text: string) => void },
): Promise<{ status: number; stderr: string }> {
  const env = { NATS_URL: from.url, NATS_TO_URL: toUrl }
  let stderr = ''
  const writeError = (text: string) => {
    stderr += text
  }
  const status = await runCommand({ env, args: ['move-nats', 'finish'], write, writeError })
  return { status, stderr }
}

it('prepares nothing while a console runs, and then makes streams and directory', async () => {
  const url = await rig.postgres.createMigratedDatabase()
  const MASTER_KEY = randomBytes(32).toString('base64')
  const env = { NATS_URL: rig.servers[1].url, POSTGRES_URL: url, MASTER_KEY }
  const prepare = () => runDi(['--json', 'move-nats', 'prepare'], env)
  const running = createPostgres(url, { role: 'console jobs', log: quietLog })
  await running.query('select 1')
  const refused = await prepare()
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('A console is running')
  await expect(rig.next.manager.streams.info(telemetryStream)).rejects.toThrow('not found')
  await running.close()
  const prepared = await until('the session has ended', async () => {
    const result = await prepare()
    return result.status === 0 ? result : null
  })
  expect(JSON.parse(prepared.stdout)).toMatchObject({ tenants: 0 })
  const { config } = await rig.next.manager.streams.info(telemetryStream)
  expect(config).toMatchObject({ discard: 'new', num_replicas: 1 })
})

it('refuses the same servers on both sides', async () => {
  const { status, stderr } = await finish(rig, { toUrl: rig.servers[0].url })
  expect(status).toBe(1)
  expect(stderr).toContain('are the same servers')
})

it('waits for edges and scorers, lets nothing more in, and copies the rest', async () => {
  const { old, next } = rig
  const publish = (nats: Nats, subject: string) => nats.jetstream.publish(subject, '[]')
  await publish(old, telemetrySubject)
  await publish(old, deadLetterSubject)
  await (await openAcceptedBucket(old)).put('edge-1.0.0', 'a count')
  const announce = async (value: object) => {
    const bucket = await openTenantsBucket(old)
    await bucket.put(edgeKey('edge-1'), `proof\n${JSON.stringify({ edge_id: 'edge-1', ...value })}`)
  }
  await announce({ applied_revision: 1 })
  const keep = setInterval(() => void announce({ applied_revision: 1 }), 500)
  let printed = ''
  const write = (text: string) => {
    printed += text
  }
  const finishing = finish(rig, { write })
  const isSealed = async () =>
    (await old.manager.streams.info(telemetryStream)).config.sealed === true
  await until('it waits for the edge', () => printed.includes('old servers: edge-1'))
  expect(await isSealed()).toBe(false)
  await publish(old, telemetrySubject)
  clearInterval(keep)
  await announce({ gone: true })
  await until('the stream is sealed', isSealed)
  await expect(publish(old, telemetrySubject)).rejects.toThrow('sealed')
  const { state } = await old.manager.streams.info(telemetryStream)
  const decide = async (durable: string) => {
    const consumer = await old.jetstream.consumers.get(telemetryStream, durable)
    const messages = await consumer.fetch({ max_messages: state.messages, expires: 5_000 })
    for await (const message of messages) await message.ackAck()
  }
  await decide(scorerConsumer)
  await until('it waits for scorers', () => printed.includes('2 messages are not decided'))
  expect(printed).not.toContain('Copied')
  await decide(deciderConsumer)
  expect(await finishing).toEqual({ status: 0, stderr: '' })
  expect(printed).toContain(`Copied: KV_${acceptedBucket} 1, `)
  expect(printed).toContain(`${deadLetterStream} 1.`)
  expect((await (await openAcceptedBucket(next)).get('edge-1.0.0'))?.string()).toBe('a count')
  expect((await next.manager.streams.info(deadLetterStream)).state.messages).toBe(1)
  expect((await next.manager.streams.info(telemetryStream)).state.messages).toBe(0)
})
