// The REST API during an outage of a database: calls that do not need it are answered, the others
// get a 503 while it lasts, and all work again after it.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type ApiRig, createApiRig } from '../../support/http/api-rig.ts'
import { until } from '../../support/process/until.ts'
import { startPostgres, type TestPostgres } from '../../support/servers/postgres-server.ts'

let postgres: TestPostgres
let postgresUrl: string
let rig: ApiRig
let key: string
let mute: Server
let wire: Server
/** While it is cut, all traffic between the api and Postgres is dropped without a notice. */
let cut = false
const sockets = new Set<Socket>()

beforeAll(async () => {
  // A ClickHouse that accepts connections and never answers: the worst kind of outage.
  mute = await serve(() => undefined)
  postgres = await startPostgres()
  const url = await postgres.createMigratedDatabase()
  wire = await serve((socket) => {
    const server = connect(postgres.port, '127.0.0.1')
    track(server)
    socket.on('data', (bytes) => cut || server.write(bytes))
    server.on('data', (bytes) => cut || socket.write(bytes))
    socket.on('close', () => server.destroy())
    server.on('close', () => socket.destroy())
  })
  postgresUrl = url.replace(`:${postgres.port}/`, `:${portOf(wire)}/`)
  const clickhouse = `http://127.0.0.1:${portOf(mute)}`
  rig = await createApiRig({ postgres: postgresUrl, clickhouse }, { statementMs: 10_000 })
  key = await rig.addTenant('acme')
})

afterAll(async () => {
  await rig?.close()
  for (const socket of sockets) socket.destroy()
  mute?.close()
  wire?.close()
  await postgres?.stop()
})

function track(socket: Socket): void {
  sockets.add(socket)
  socket.on('error', () => undefined)
}

async function serve(onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    track(socket)
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

const get = (path: string, of: ApiRig = rig): Promise<Answer> =>
  path === '/readyz' ? of.callInternal(path) : of.call(path, { key })

function expectUnavailable(answer: Answer): void {
  expect(answer.status, answer.text).toBe(503)
  expect(answer.json()).toMatchObject({ code: 'unavailable', status: 503 })
  expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
}

const isServed = async () => (await get('/v1/di/alerts')).status === 200

describe('without ClickHouse', () => {
  test('alerts are answered; a device is a 503, on a hang and on an outage', async () => {
    await until('alerts are answered', isServed)
    expectUnavailable(await get('/v1/di/devices/d'))
    const gone = await createApiRig({ postgres: postgresUrl, clickhouse: 'http://127.0.0.1:1' })
    expectUnavailable(await get('/v1/di/devices/d', gone))
    expect((await get('/v1/di/alerts', gone)).status).toBe(200)
    await gone.close()
  })

  test('readiness names ClickHouse, and nothing else', async () => {
    const missing = { clickhouse: expect.any(String) }
    await until('Postgres is not missing', async () => {
      const answer = await get('/readyz')
      expect(answer.status).toBe(503)
      expect(answer.json()).toEqual({ status: 'not_ready', missing })
      return true
    })
    expect((await get('/healthz')).status).toBe(200)
  })
})

describe('without Postgres', () => {
  test('many calls get a 503 while Postgres hangs, and then work', async () => {
    await until('alerts are answered', isServed)
    cut = true
    try {
      const answers = await Promise.all(Array.from({ length: 40 }, () => get('/v1/di/alerts')))
      for (const answer of answers) expectUnavailable(answer)
      expect((await get('/healthz')).status).toBe(200)
      expect((await get('/readyz')).json().missing).toHaveProperty('postgres')
    } finally {
      cut = false
    }
    await until('it recovers', isServed)
  })

  test('calls get a 503 while Postgres is down, a bad key a 401; then all work', async () => {
    await postgres.kill('SIGKILL')
    // Its processes for open connections notice a moment later.
    await until('they ended', async () => !(await isServed()))
    expectUnavailable(await get('/v1/di/alerts'))
    expectUnavailable(await get('/v1/di/devices/d'))
    expect((await rig.call('/v1/di/alerts', { key: 'nonsense' })).status).toBe(401)
    expect((await get('/openapi.json')).status).toBe(200)
    expect((await get('/readyz')).json().missing).toHaveProperty('postgres')
    await postgres.restart()
    await until('it recovers', isServed)
  })
})
