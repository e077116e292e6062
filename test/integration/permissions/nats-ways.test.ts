/**
 * Each way in which a client can make nats-server publish, change or remove something for it,
 * tried on a real server as the user of each process that has an account of its own. The server
 * checks the subject that a client publishes to, and not what it then does for that client: it
 * answers on any reply subject, and acts on what a request's body or headers say.
 *
 * The test prints the table of what was tried.
 */
import { connect, headers, type Msg, type MsgHdrs, type NatsConnection, StorageType } from 'nats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { processPermissions } from '#shared/core/permissions/process-permissions.ts'
import {
  deadLetterSubject,
  deliveryHintSubject,
  telemetrySubject,
} from '#shared/core/telemetry/nats-names.ts'
import { connectNats, type Nats, toInboxPrefix } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { startNats, type TestNats } from '../../support/servers/nats/nats-server.ts'
import { quietLog } from '../../support/telemetry/edge-rig.ts'

/** The processes that must not be able to act beyond their subjects. */
const processes = ['ingest', 'scorer', 'delivery'] as const
type Limited = (typeof processes)[number]

let server: TestNats
let operator: Nats
const connections = new Map<Limited, NatsConnection>()

/** The streams that nobody but the operator may touch. */
const victim = 'VICTIM'
const api = '$JS.API'

beforeAll(async () => {
  server = await startNats({ syncAlways: false })
  operator = await connectNats(server.url, 'operator', quietLog)
  await ensureStreams(operator)
  for (const user of processes) {
    const { host, username, password } = new URL(server.urlOf(user))
    const inboxPrefix = toInboxPrefix(user)
    const options = { servers: host, user: username, pass: password, inboxPrefix }
    connections.set(user, await connect({ ...options, reconnect: false }))
  }
})

afterAll(async () => {
  for (const connection of connections.values()) await connection.close()
  await operator.close()
  await server.stop()
})

type Attempt = {
  /** Publishes as the process; the operator's subscription hears what reaches `canary.>`. */
  publish: (subject: string, data?: object | string, options?: PublishOptions) => void
  connection: NatsConnection
  user: Limited
  canary: string
}
type PublishOptions = { reply?: string; headers?: Record<string, string> }

/** Every subject that a process may publish to, with something in the place of a wildcard. */
const subjectsOf = (user: Limited): string[] =>
  (processPermissions[user].nats?.publish ?? []).map((subject) =>
    subject.replace(/\*/g, 'one').replace(/>$/, 'one.more'),
  )

const everyStream = [
  ...['TELEMETRY', 'DEAD_LETTERS', 'ALERTS', 'KV_tenants', 'KV_removals', 'KV_accepted'],
  'KV_stale_secret_requests',
]
const purge = `${api}.STREAM.PURGE.${victim}`
const forged = '$KV.tenants.tenant.acme'
const toBody = (data: object | string) => (typeof data === 'string' ? data : JSON.stringify(data))

/** Bodies that some verb of JetStream answers with a message. */
const bodies = [
  '',
  '{}',
  { seq: 1 },
  { last_by_subj: '$KV.tenants.edge.own' },
  { batch: 1, no_wait: true },
  { filter: '>' },
]
/** Requests of the API beyond what a process has, each with a body that makes the server act. */
const requests = (canary: string): [string, object][] => [
  ...everyStream.flatMap((stream): [string, object][] => [
    [`${api}.CONSUMER.CREATE.${stream}`, toPush(stream, canary)],
    [`${api}.CONSUMER.CREATE.${stream}.own`, toPush(stream, canary, 'own')],
    [`${api}.CONSUMER.CREATE.${stream}.own.>`, toPush(stream, canary, 'own')],
    [`${api}.CONSUMER.DURABLE.CREATE.${stream}.scorer`, toPush(stream, canary, 'scorer')],
    [`${api}.CONSUMER.DURABLE.CREATE.${stream}.own`, toPush(stream, canary, 'own')],
    [`${api}.STREAM.UPDATE.${stream}`, { name: stream, republish: { src: '>', dest: canary } }],
    [`${api}.STREAM.SNAPSHOT.${stream}`, { deliver_subject: canary }],
    [`${api}.STREAM.RESTORE.${stream}`, {}],
    [`${api}.STREAM.LEADER.STEPDOWN.${stream}`, {}],
    [`${api}.STREAM.PEER.REMOVE.${stream}`, { peer: 'x' }],
    [`${api}.CONSUMER.PAUSE.${stream}.scorer`, { pause_until: '2100-01-01T00:00:00Z' }],
    [`${api}.CONSUMER.UNPIN.${stream}.scorer`, { group: 'x' }],
  ]),
  [`${api}.ACCOUNT.PURGE.DEVICE_INTELLIGENCE`, {}],
  ['$SYS.REQ.USER.INFO', {}],
  ['$SYS.REQ.SERVER.PING', {}],
  ['$SYS.REQ.ACCOUNT.PING.CONNZ', {}],
  ['$SRV.PING', {}],
]
const toPush = (stream: string, canary: string, name?: string) => ({
  stream_name: stream,
  config: {
    deliver_subject: canary,
    ack_policy: 'none',
    deliver_policy: 'all',
    idle_heartbeat: 200_000_000,
    flow_control: true,
    ...(name === undefined ? {} : { name, durable_name: name }),
  },
})

/** By name: what the process does. The server acted when the canary or a victim shows it. */
const ways: Record<string, (attempt: Attempt) => void | Promise<void>> = {
  'a reply subject of its choice': ({ publish, user, canary }) => {
    for (const subject of subjectsOf(user)) {
      for (const body of bodies) publish(subject, body, { reply: canary })
    }
  },
  'a reply into the API: purge, delete, restore': ({ publish, user }) => {
    for (const subject of subjectsOf(user)) {
      for (const verb of ['PURGE', 'DELETE']) {
        publish(subject, '{}', { reply: `${api}.STREAM.${verb}.${victim}` })
      }
    }
  },
  'a reply into the directory and the removals': ({ publish, user }) => {
    for (const subject of subjectsOf(user)) {
      publish(subject, '{}', { reply: forged })
      publish(subject, '{}', { reply: '$KV.removals.forged' })
    }
  },
  'a read whose answer is a body of its own, into the directory': ({ publish, user }) => {
    const own = subjectsOf(user).filter((subject) => subject.startsWith('$KV.'))
    for (const subject of own) {
      publish(subject, 'a body of its own')
      const bucket = subject.split('.')[1]
      publish(`${api}.DIRECT.GET.KV_${bucket}.${subject}`, '', { reply: forged })
      publish(`${api}.DIRECT.GET.KV_${bucket}`, { last_by_subj: subject }, { reply: forged })
    }
  },
  'an empty answer as an acknowledgement of the scorers': ({ publish, user }) => {
    if (user === 'scorer') return
    for (const subject of subjectsOf(user)) {
      for (const body of ['', { seq: 1_000_000 }, { batch: 1, no_wait: true }]) {
        publish(subject, body, { reply: `$JS.ACK.TELEMETRY.scorer.1.1.1.${Date.now()}000000.0` })
      }
    }
  },
  'a reply subject of the server itself': ({ publish, user }) => {
    for (const subject of subjectsOf(user)) {
      for (const prefix of ['_R_.x.y', '_GR_.a.b', '$GNR.x.y', '$JS.FC.KV_tenants.x.y']) {
        publish(subject, '{}', { reply: `${prefix}.${victim}` })
      }
    }
  },
  'push consumers, snapshots, republish and other requests': ({ publish, canary }) => {
    for (const [subject, body] of requests(canary)) publish(subject, body, { reply: canary })
  },
  'a stream with sources, a mirror or republish': ({ publish, canary }) => {
    const base = { storage: 'memory', num_replicas: 1, retention: 'limits' }
    const republish = { src: '>', dest: canary }
    const copies: object[] = [
      { sources: everyStream.map((name) => ({ name })), republish },
      { mirror: { name: 'KV_tenants' }, republish },
      { subjects: ['copied.>', 'request_log.>'], republish },
    ]
    for (const name of [...everyStream, 'TELEMETRY_8', 'COPY']) {
      for (const copy of copies) {
        publish(`${api}.STREAM.CREATE.${name}`, { name, ...base, ...copy }, { reply: canary })
        publish(`${api}.STREAM.UPDATE.${name}`, { name, ...base, ...copy }, { reply: canary })
      }
    }
  },
  'a rollup of a whole bucket or stream': ({ publish, user }) => {
    for (const subject of subjectsOf(user).filter((one) => !one.startsWith('$JS.'))) {
      for (const rollup of ['all', 'sub']) {
        publish(subject, 'x', { headers: { 'Nats-Rollup': rollup } })
      }
    }
  },
  'a trace of a message to a subject of its choice': ({ publish, user, canary }) => {
    for (const subject of subjectsOf(user)) {
      const trace = { 'Nats-Trace-Dest': canary, 'Nats-Trace-Only': 'true' }
      const parent = {
        'Nats-Trace-Dest': canary,
        traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
      }
      for (const set of [trace, parent, { 'Nats-Trace-Dest': purge }]) {
        publish(subject, '{}', { headers: set })
      }
    }
  },
  'a scheduled or counted message, or one with a time to live': ({ publish, user, canary }) => {
    for (const subject of subjectsOf(user).filter((one) => !one.startsWith('$JS.'))) {
      for (const target of [canary, forged]) {
        const schedule = `@at ${new Date(Date.now() + 1_000).toISOString()}`
        const set = { 'Nats-Schedule': schedule, 'Nats-Schedule-Target': target }
        publish(subject, 'x', { headers: set })
        publish(subject, 'x', { headers: { ...set, 'Nats-Schedule-TTL': '1s', 'Nats-TTL': '1s' } })
      }
      publish(subject, 'x', { headers: { 'Nats-Incr': '+1' } })
    }
  },
  'a batch that commits elsewhere': ({ publish, user, canary }) => {
    for (const subject of subjectsOf(user).filter((one) => !one.startsWith('$JS.'))) {
      const batch = { 'Nats-Batch-Id': 'b', 'Nats-Batch-Sequence': '1', 'Nats-Batch-Commit': '1' }
      publish(subject, 'x', { reply: canary, headers: batch })
      publish(forged, 'x', { reply: canary, headers: batch })
    }
  },
  'an acknowledgement that asks for more, to a subject of its choice': ({ publish, canary }) => {
    for (const at of ['TELEMETRY.scorer', 'TELEMETRY.decider', 'ALERTS.delivery']) {
      for (const body of ['+ACK', '+NXT {"batch":1,"no_wait":true}', '+TERM', '']) {
        publish(`$JS.ACK.${at}.1.1.1.${Date.now()}000000.0`, body, { reply: canary })
      }
    }
  },
  'what it may not publish, with and without a reader': ({ publish, canary }) => {
    for (const subject of [canary, forged, '$KV.removals.forged', purge, 'nobody.listens']) {
      publish(subject, 'x', { reply: canary })
    }
    publish(`${api}.STREAM.DELETE.${victim}`, '')
    publish(`${api}.STREAM.MSG.DELETE.${victim}`, { seq: 1 })
  },
}

type Outcome = { canary: string[]; changed: string[] }

/** Prepares what may be harmed, lets a process try one way, and reports what it brought about. */
async function tryWay(user: Limited, name: string): Promise<Outcome> {
  const { manager, connection: control } = operator
  await manager.streams.delete(victim).catch(() => undefined)
  await manager.streams.delete('COPY').catch(() => undefined)
  await ensureStreams(operator)
  const file = StorageType.Memory
  await manager.streams.add({ name: victim, subjects: ['victim.>'], storage: file })
  await operator.jetstream.publish('victim.one', 'keep')
  for (const key of ['tenant.acme', 'policy.one', 'edge.other']) {
    await operator.jetstream.publish(`$KV.tenants.${key}`, 'kept')
  }
  for (const bucket of ['accepted', 'stale_secret_requests']) {
    await operator.jetstream.publish(`$KV.${bucket}.kept`, 'kept')
  }
  await operator.jetstream.publish(telemetrySubject, '[]')
  const canary = `canary.${user}`
  const heard: string[] = []
  const subscription = control.subscribe('canary.>', {
    callback: (_error, message) => heard.push(message.string().slice(0, 80)),
  })
  // One message is with a scorer: it is redelivered unless somebody acknowledges it.
  const pulled = control.subscribe('pulled')
  control.publish(`${api}.CONSUMER.MSG.NEXT.TELEMETRY.scorer`, '{"batch":1000,"no_wait":true}', {
    reply: 'pulled',
  })
  await control.flush()
  await control.flush()
  pulled.unsubscribe()
  const before = await readState()
  const connection = connections.get(user)!
  await ways[name]!({
    connection,
    user,
    canary,
    publish: (subject, data = '', { reply, headers: set } = {}) => {
      const meta: MsgHdrs | undefined = set === undefined ? undefined : headers()
      for (const [key, value] of Object.entries(set ?? {})) meta!.append(key, value)
      connection.publish(subject, toBody(data), {
        ...(reply === undefined ? {} : { reply }),
        ...(meta === undefined ? {} : { headers: meta }),
      })
    },
  })
  // What the server does for a request is done, or on its way, when it answers the next ones.
  await connection.flush()
  await control.flush()
  await manager.streams.info(victim).catch(() => undefined)
  await control.flush()
  subscription.unsubscribe()
  const after = await readState()
  const changed = Object.keys(before).filter((what) => before[what] !== after[what])
  return { canary: heard, changed }
}

/** What no limited process may change, each as a text that tells it apart. */
async function readState(): Promise<Record<string, string>> {
  const { manager } = operator
  const info = async (stream: string, filter = '>') => {
    const read = await manager.streams.info(stream, { subjects_filter: filter }).catch(() => null)
    return read === null
      ? 'gone'
      : { ...read.state.subjects, config: read.config, created: read.created }
  }
  const last = async (stream: string, subject: string) => {
    const read = await manager.streams
      .getMessage(stream, { last_by_subj: subject })
      .catch(() => null)
    return read === null ? 'gone' : `${read.seq} ${read.string()}`
  }
  const consumer = async (stream: string, durable: string) => {
    const read = await manager.consumers.info(stream, durable).catch(() => null)
    return read === null ? 'gone' : { ...read.config, at: read.ack_floor.stream_seq }
  }
  const names = (await manager.streams.list().next()).map(({ config }) => config.name).sort()
  const consumers: string[] = []
  for (const name of names) {
    const list = await manager.consumers.list(name).next()
    consumers.push(...list.map((one) => `${name}.${one.name}`))
  }
  const state = {
    streams: names,
    consumers: consumers.sort(),
    victim: await info(victim),
    'the tenant': await last('KV_tenants', forged),
    'the policy': await last('KV_tenants', '$KV.tenants.policy.one'),
    'the other edge': await last('KV_tenants', '$KV.tenants.edge.other'),
    removals: await info('KV_removals'),
    'other reports': [
      await last('KV_accepted', '$KV.accepted.kept'),
      await last('KV_stale_secret_requests', '$KV.stale_secret_requests.kept'),
    ],
    'the directory': (await manager.streams.info('KV_tenants')).config,
    'the scorers': [await consumer('TELEMETRY', 'scorer'), await consumer('TELEMETRY', 'decider')],
    'the delivery': await consumer('ALERTS', 'delivery'),
  }
  return Object.fromEntries(
    Object.entries(state).map(([what, value]) => [what, JSON.stringify(value)]),
  )
}

/** What a process does to others is its job: it removes what is decided, and takes messages. */
const duties: Partial<Record<Limited, readonly string[]>> = {
  scorer: ['the scorers'],
  delivery: ['the delivery'],
}

describe('what nats-server does for a process', () => {
  const table: string[] = []
  afterAll(() => {
    process.stdout.write(`${table.join('\n')}\n`)
  })

  it.each(Object.keys(ways))('%s', async (name) => {
    const faults: string[] = []
    for (const user of processes) {
      const outcome = await tryWay(user, name)
      const changed = outcome.changed.filter((what) => !duties[user]?.includes(what))
      const what = [...new Set(outcome.canary)].map((text) => `heard ${text}`).slice(0, 3)
      const harm = [...what, ...changed.map((one) => `changed ${one}`)]
      table.push(`${user.padEnd(9)} ${name.padEnd(66)} ${harm.join('; ') || 'nothing'}`)
      if (harm.length > 0) faults.push(`${user}: ${harm.join('; ')}`)
    }
    expect(faults).toEqual([])
  })

  it('is not read by another: answers, messages and keys reach their reader alone', async () => {
    for (const user of processes) {
      const connection = connections.get(user)!
      const heard: string[] = []
      const subjects = [
        ...['>', '_INBOX.>', '$KV.>', '$JS.>', '*.*', 'telemetry.>', 'alerts.>', 'dead.>'],
        ...processes.filter((one) => one !== user).map((one) => `${toInboxPrefix(one)}.>`),
        ...[`${toInboxPrefix('operator')}.>`, '_R_.>', '$SYS.>', 'canary.>'],
      ]
      // A refused subscription calls back with the refusal alone.
      const callback = (refusal: Error | null, message: Msg) => {
        if (refusal === null) heard.push(message.subject)
      }
      const options = { callback }
      const subscriptions = subjects.flatMap((subject) => [
        connection.subscribe(subject, options),
        connection.subscribe(subject, { ...options, queue: 'own' }),
      ])
      await connection.flush()
      for (const subject of [telemetrySubject, deadLetterSubject, deliveryHintSubject]) {
        await operator.jetstream.publish(subject, '[]')
      }
      await operator.jetstream.publish(forged, 'kept')
      await operator.manager.streams.info('KV_tenants')
      operator.connection.publish('canary.x', 'x')
      await operator.connection.flush()
      await connection.flush()
      for (const subscription of subscriptions) subscription.unsubscribe()
      expect(heard, user).toEqual([])
    }
  })
})
