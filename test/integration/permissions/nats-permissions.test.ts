import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type NatsConnection, StorageType } from 'nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { jetstreamAccount } from '#shared/core/permissions/nats-permissions.ts'
import {
  type ProcessName,
  processPermissions,
} from '#shared/core/permissions/process-permissions.ts'
import {
  deadLetterStream,
  deadLetterSubject,
  deciderConsumer,
  deliveryHintSubject,
  scorerConsumer,
  telemetryStream,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats, toInboxPrefix } from '#shared/io/nats/connection.ts'
import { openTenantsBucket } from '#shared/io/nats/streams/buckets.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { type NatsUser, natsUserNames } from '../../../deploy/nats-users.ts'
import {
  createServiceAccounts,
  makeFolder,
  startConfigured,
} from '../../support/servers/nats/nats-configured.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

let server: TestNats
let operator: Nats
const connections = new Map<NatsUser, NatsConnection>()

beforeAll(async () => {
  server = await startNats({ syncAlways: false })
  operator = await connectNats(server.url, 'operator', quietLog)
  await ensureStreams(operator)
  await (await openTenantsBucket(operator)).put('tenant.acme', 'sealed')
  await operator.jetstream.publish(telemetrySubject, '[]')
  await operator.jetstream.publish(deadLetterSubject, '[]')
  for (const user of natsUserNames) connections.set(user, await signIn(user))
})

afterAll(async () => {
  for (const connection of connections.values()) await connection.close()
  await operator.close()
  await server.stop()
})

function signIn(user: NatsUser): Promise<NatsConnection> {
  const { host, username, password } = new URL(server.urlOf(user))
  return connect({
    servers: host,
    user: username,
    pass: password,
    inboxPrefix: toInboxPrefix(user),
    reconnect: false,
  })
}

const processes = natsUserNames.filter((user) => user !== 'di')

/**
 * Whether the server lets a user publish on a subject: it reports a violation before the next pong.
 */
async function mayPublish(user: NatsUser, subject: string, data = ''): Promise<boolean> {
  const connection = connections.get(user)!
  const violated = watchViolation(connection, subject)
  // The unknown reply subject keeps an allowed publish from storing anything.
  connection.publish(subject, data, { reply: `${toInboxPrefix(user)}.nobody` })
  await connection.flush()
  return !(await violated())
}

async function mayRead(user: NatsUser, subject: string): Promise<boolean> {
  const connection = connections.get(user)!
  const violated = watchViolation(connection, subject)
  const subscription = connection.subscribe(subject, { callback: () => undefined })
  await connection.flush()
  const refused = await violated()
  subscription.unsubscribe()
  return !refused
}

function watchViolation(connection: NatsConnection, subject: string): () => Promise<boolean> {
  const seen: string[] = []
  const status = connection.status()
  const watching = (async () => {
    for await (const { permissionContext } of status) {
      if (permissionContext !== undefined) seen.push(permissionContext.subject)
    }
  })()
  return async () => {
    await connection.flush()
    ;(status as unknown as { stop: () => void }).stop()
    await watching
    return seen.includes(subject)
  }
}

const api = '$JS.API'
/** Each attempt, and the users that may make it. All others must be rejected. */
const attempts: Record<string, { subject: string; allowed: ProcessName[] }> = {
  'publish telemetry': { subject: telemetrySubject, allowed: ['ingest'] },
  'publish dead letters': { subject: deadLetterSubject, allowed: ['scorer', 'console'] },
  'hint at deliveries': { subject: deliveryHintSubject, allowed: ['scorer', 'console'] },
  'write a tenant': { subject: '$KV.tenants.tenant.acme', allowed: ['console'] },
  'write a policy': { subject: '$KV.tenants.policy.x', allowed: ['console'] },
  'call the directory complete': { subject: '$KV.tenants.whole', allowed: ['console'] },
  'announce an edge': { subject: '$KV.tenants.edge.x', allowed: ['ingest', 'console'] },
  'claim what was accepted': { subject: '$KV.accepted.x', allowed: ['ingest'] },
  'report stale secrets': { subject: '$KV.stale_secret_requests.x', allowed: ['ingest'] },
  'query the request logs of edges': { subject: 'request_log.query', allowed: ['console'] },
  'answer with a request log': { subject: 'request_log.answer.x', allowed: ['ingest'] },
  'read telemetry by a consumer of its own': {
    subject: `${api}.CONSUMER.CREATE.TELEMETRY.own.telemetry.batch`,
    allowed: ['console'],
  },
  'read telemetry by an unnamed consumer': {
    subject: `${api}.CONSUMER.CREATE.TELEMETRY`,
    allowed: ['console'],
  },
  'read one telemetry message': {
    subject: `${api}.STREAM.MSG.GET.TELEMETRY`,
    allowed: ['scorer', 'console'],
  },
  "take the scorers' messages": {
    subject: `${api}.CONSUMER.MSG.NEXT.TELEMETRY.scorer`,
    allowed: ['scorer'],
  },
  "acknowledge the scorers' messages": {
    subject: '$JS.ACK.TELEMETRY.scorer.1.1.1.1.0',
    allowed: ['scorer'],
  },
  "delete the scorers' consumer": {
    subject: `${api}.CONSUMER.DELETE.TELEMETRY.decider`,
    allowed: [],
  },
  'read dead letters': { subject: `${api}.STREAM.MSG.GET.DEAD_LETTERS`, allowed: ['console'] },
  'read the directory': {
    subject: `${api}.DIRECT.GET.KV_tenants.$KV.tenants.tenant.acme`,
    allowed: ['ingest', 'console'],
  },
  'erase a telemetry message': {
    subject: `${api}.STREAM.MSG.DELETE.TELEMETRY`,
    allowed: ['console'],
  },
  'purge the telemetry stream': { subject: `${api}.STREAM.PURGE.TELEMETRY`, allowed: ['scorer'] },
  'purge the directory': { subject: `${api}.STREAM.PURGE.KV_tenants`, allowed: ['console'] },
  'create the telemetry stream': {
    subject: `${api}.STREAM.CREATE.TELEMETRY`,
    allowed: ['console', 'migrate'],
  },
  'create the consumer of scorers': {
    subject: `${api}.CONSUMER.CREATE.TELEMETRY.scorer.telemetry.batch`,
    allowed: ['console', 'migrate'],
  },
  'delete the telemetry stream': { subject: `${api}.STREAM.DELETE.TELEMETRY`, allowed: [] },
  'delete the directory': { subject: `${api}.STREAM.DELETE.KV_tenants`, allowed: [] },
  'change the telemetry stream': {
    subject: `${api}.STREAM.UPDATE.TELEMETRY`,
    allowed: ['migrate'],
  },
  'make a stream that copies another': {
    subject: `${api}.STREAM.CREATE.COPY`,
    allowed: ['migrate'],
  },
  'restore a stream': { subject: `${api}.STREAM.RESTORE.KV_tenants`, allowed: [] },
  'take a snapshot': { subject: `${api}.STREAM.SNAPSHOT.TELEMETRY`, allowed: [] },
  'ask the server': { subject: '$SYS.REQ.SERVER.PING', allowed: [] },
}

describe('the user of a process', () => {
  it.each(Object.keys(attempts))('%s', async (name) => {
    const { subject, allowed } = attempts[name]!
    const may: NatsUser[] = []
    for (const user of processes) {
      // `{` is no request that JetStream understands: an allowed one changes nothing.
      if (await mayPublish(user, subject, '{')) may.push(user)
    }
    expect(may).toEqual(processes.filter((user) => (allowed as NatsUser[]).includes(user)))
  })

  it('reads only the answers to itself, and no subject at large', async () => {
    for (const user of processes) {
      expect(await mayRead(user, `${toInboxPrefix(user)}.x.*`)).toBe(true)
      const others = processes
        .filter((other) => other !== user)
        .map((other) => toInboxPrefix(other))
      for (const prefix of [...others, toInboxPrefix('di')]) {
        expect(await mayRead(user, `${prefix}.>`), `${user} ${prefix}`).toBe(false)
      }
      for (const subject of ['>', '_INBOX.>', '_INBOX.*.>', 'telemetry.>', '$KV.>', '$JS.>']) {
        expect(await mayRead(user, subject), `${user} ${subject}`).toBe(false)
      }
    }
  })

  it('reads queries for request logs as an edge, and their answers as a console', async () => {
    const readers: Record<string, NatsUser[]> = {
      'request_log.query': ['ingest'],
      'request_log.answer.x': ['console'],
      'request_log.>': [],
    }
    for (const [subject, allowed] of Object.entries(readers)) {
      for (const user of processes) {
        const may = allowed.includes(user)
        expect(await mayRead(user, subject), `${user} ${subject}`).toBe(may)
      }
    }
  })

  it('is in an account of its own, beside the one with JetStream', () => {
    const accounts = processes.map((user) => processPermissions[user as ProcessName].nats!.account)
    expect(accounts.filter((account) => account !== jetstreamAccount)).toHaveLength(3)
    expect(new Set(accounts).size).toBe(4)
    expect(processPermissions.console.nats!.account).toBe(jetstreamAccount)
    expect(processPermissions.migrate.nats!.account).toBe(jetstreamAccount)
  })

  it('differs for each process, and the api has none', () => {
    expect(processPermissions.api.nats).toBeNull()
    expect(natsUserNames).not.toContain('api')
  })

  it('is required: no client connects without it, or with the password of another', async () => {
    const { host } = new URL(server.url)
    for (const who of [{}, { user: 'ingest', pass: 'guessed' }, { user: 'api', pass: 'x' }]) {
      await expect(connect({ servers: host, reconnect: false, ...who })).rejects.toMatchObject({
        code: 'AUTHORIZATION_VIOLATION',
      })
    }
  })
})

describe('the operator', () => {
  it('may do everything, as the URL in stack.json shows', async () => {
    const { manager } = operator
    await manager.streams.add({ name: 'OWN', subjects: ['own'], storage: StorageType.Memory })
    expect(await manager.streams.delete('OWN')).toBe(true)
    for (const durable of [scorerConsumer, deciderConsumer]) {
      expect((await manager.consumers.info(telemetryStream, durable)).name).toBe(durable)
    }
    const { state } = await manager.streams.info(deadLetterStream)
    expect(state.messages).toBeGreaterThan(0)
  })
})

describe('a server in operator mode, with the same table in its JWTs', () => {
  it('gives each process what it needs, and no more', async () => {
    const { dir, remove } = makeFolder()
    onTestFinished(remove)
    const { lines, creds } = createServiceAccounts()
    const store = `jetstream { store_dir: ${JSON.stringify(dir)}, max_file_store: 64GB }`
    const own = await startConfigured(dir, [...lines, store])
    onTestFinished(own.stop)
    const open = async (user: NatsUser) => {
      const credsFile = join(dir, `${user}.creds`)
      writeFileSync(credsFile, creds[user]!)
      const nats = await connectNats(
        { url: `nats://127.0.0.1:${own.port}`, credsFile },
        user,
        quietLog,
      )
      onTestFinished(nats.close)
      return nats
    }
    await ensureStreams(await open('migrate'))
    await (await openTenantsBucket(await open('console'))).put('tenant.acme', 'sealed')
    const ingest = await open('ingest')
    expect((await ingest.jetstream.publish(telemetrySubject, '[]')).seq).toBe(1)
    const bucket = await openTenantsBucket(ingest)
    expect((await bucket.get('tenant.acme'))?.string()).toBe('sealed')
    await expect(bucket.put('tenant.acme', 'forged')).rejects.toThrow()
    await expect(ingest.manager.consumers.add(telemetryStream, {})).rejects.toThrow()
    const scorer = await open('scorer')
    const inbox = scorer.newInbox()
    const pulled = scorer.connection.subscribe(inbox, { max: 1 })
    const next = `$JS.API.CONSUMER.MSG.NEXT.${telemetryStream}.${scorerConsumer}`
    scorer.connection.publish(next, '{"batch":1,"no_wait":true}', { reply: inbox })
    for await (const message of pulled) {
      expect([message.subject, message.string()]).toEqual([telemetrySubject, '[]'])
    }
  })
})
