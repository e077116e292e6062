// Exports and `di cookbook` over the admin API on the real engine: an answer is whole or an error,
// at the analysts' address, as the console's CSV and at the terminal.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Command } from 'commander'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { type ConsoleDeps, createConsoleApp } from '../../../services/console/app.ts'
import { cookbook } from '../../../services/console/cli/analytics/cookbook.ts'
import { createCliContext } from '../../../services/console/cli/context.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { inTime } from '../../support/process/until.ts'

const adminToken = randomBytes(32).toString('base64url')
const million = 1_000_000
let rig: AnalystsRig
let app: FastifyInstance
let consoleUrl: string
/** The console's address of analysts; a test may replace it. */
const analysts = {} as AnalystsRig['deps']['analysts']

beforeAll(async () => {
  rig = await createAnalystsRig()
  const deps = {
    ...rig.deps,
    analysts: Object.assign(analysts, rig.deps.analysts),
    publicUrl: () => 'http://127.0.0.1:8082',
    adminToken,
    log: testLog,
    sealer: createSealer([randomBytes(32).toString('base64')]),
    nowMs: () => performance.now(),
    wallMs: Date.now,
  }
  // The other routes are not called.
  app = await createConsoleApp(deps as unknown as ConsoleDeps, {
    log: testLog,
    metrics: createMetrics('console'),
  })
  consoleUrl = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app?.close()
  await rig?.close()
})

const exportCsv = (sql: string) =>
  fetch(`${consoleUrl}/admin/v1/tenants/acme/sql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sql, format: 'csv' }),
  })
const numbers = (count: number) => `select number from numbers(${count})`
const lineCount = (text: string) => text.split('\n').length - 1

/** What a client would have, with a status that says that it is whole. */
describe('an export', () => {
  it('of as many rows as an analyst may have is whole', async () => {
    await inTime(async () => {
      const direct = await rig.runQuery({ query: numbers(million) })
      expect([direct.status, lineCount(direct.text)]).toEqual([200, million])
      return true
    })
    const text = await inTime(async () => {
      const csv = await exportCsv(numbers(million))
      expect(csv.status).toBe(200)
      return csv.text()
    })
    expect(lineCount(text)).toBe(million + 1)
    expect(text.endsWith(`\n${million - 1}\r\n`)).toBe(true)
  })

  it('of two million rows is an error with its status, and not a part', async () => {
    const settings = [
      {},
      { default_format: 'JSONEachRow' },
      { compress: '1' },
      { enable_http_compression: '1' },
    ]
    for (const params of settings) {
      const direct = await rig.runQuery({ query: numbers(2 * million), params })
      expect([params, direct.status]).toEqual([params, 500])
      expect(direct.text.length).toBeLessThan(1_000)
    }
    await inTime(async () => {
      const csv = await exportCsv(numbers(2 * million))
      const problem = (await csv.json()) as { code: string; detail: string }
      expect([csv.status, problem.code]).toEqual([422, 'query_failed'])
      expect(problem.detail).toContain('1.00 million')
      return true
    })
  })

  it('that fails in its last row is an error, also when most of it was made', async () => {
    const late = `select throwIf(number = ${million - 2}, 'late') from numbers(${million - 1})`
    const direct = await rig.runQuery({ query: late })
    expect([direct.status, direct.text.length < 1_000]).toEqual([500, true])
    expect((await exportCsv(late)).status).toBe(422)
  })

  it('whose engine is lost on the way is cut off, never ended as if it were whole', async () => {
    const half = createServer((_request, response) => {
      response.writeHead(200, { 'content-length': 1_000_000, 'content-type': 'text/csv' })
      const rows = '["0"]\n'.repeat(50_000)
      response.write(`["number"]\n["UInt64"]\n${rows}`, () =>
        setTimeout(() => response.destroy(), 50),
      )
    })
    await new Promise<void>((resolve) => half.listen(0, '127.0.0.1', resolve))
    analysts.url = `http://127.0.0.1:${(half.address() as AddressInfo).port}`
    const csv = await exportCsv(numbers(10))
    await expect(csv.text()).rejects.toThrow()
    await expect(di('run', 'acme', 'hit-rate-by-day', '--csv')).rejects.toThrow('cut off')
    analysts.url = rig.front.url
    half.close()
    half.closeAllConnections()
  })
})

describe('signals', () => {
  const query = (sql: string) => rig.runQuery({ query: sql })

  it('are grouped and ordered by in events without a cast', async () => {
    const { status, text } = await query(
      'select signals.root.su_binary, count() from analytics.events group by 1 order by 1',
    )
    expect([status, text]).toEqual([200, '\\N\t50\n'])
  })

  it('are conditions and numbers in typed_events without a cast', async () => {
    const { status, text } = await query(
      `select countIf(signals.root.su_binary), avg(signals.ecosystem.patch_age_days), count()
       from analytics.typed_events where signals.root.su_binary or tenant_id = 'acme'`,
    )
    expect([status, text]).toEqual([200, '0\t\\N\t50\n'])
  })
})

/** Runs a command as the command line does, against the console over HTTP. */
async function di(...args: string[]): Promise<string> {
  let printed = ''
  const context = createCliContext({
    env: { CONSOLE_URL: consoleUrl, ADMIN_TOKEN: adminToken },
    json: () => args.includes('--json'),
    write: (text) => {
      printed += text
    },
  })
  const program = new Command('di').exitOverride().configureOutput({ writeErr: () => undefined })
  cookbook(program, context)
  await program.parseAsync(['cookbook', ...args], { from: 'user' })
  return printed
}

describe('di cookbook', () => {
  it('lists every question with its parameters and default values', async () => {
    const { data } = JSON.parse(await di('list', '--json')) as { data: { name: string }[] }
    expect(data.length).toBeGreaterThanOrEqual(26)
    const lines = (await di('list')).trimEnd().split('\n')
    expect(lines).toHaveLength(data.length + 1)
    expect(lines[1]).toMatch(/^01-device-farms +devices_min=8 findings_min=4 +Which devices form/)
  })

  it('answers a question by name or number, as a table, JSON or CSV', async () => {
    const [first, ...rows] = (await di('run', 'acme', '23')).trimEnd().split('\n')
    expect(first).toMatch(/^DAY +SESSIONS +REVIEWED +BLOCKED +HIT_RATE +DEVICES$/)
    expect(rows.length).toBeGreaterThan(0)
    const json = JSON.parse(await di('run', 'acme', '23-hit-rate-by-day', '--json'))
    expect(json.columns[0]).toEqual({ name: 'day', type: 'Date' })
    expect(json.rows.map((row: string[]) => row[0])).toEqual(rows.map((row) => row.slice(0, 10)))
    const csv = await di('run', 'acme', 'hit-rate-by-day', '--csv')
    expect(lineCount(csv)).toBe(rows.length + 1)
    expect(csv).toMatch(/^"day","sessions"/)
  })

  it('takes parameters and a time span, and refuses what a question does not have', async () => {
    const at = (...args: string[]) => di('run', 'acme', 'many-users-on-a-device', ...args)
    expect(await at()).toBe('There are no rows in this time.\n')
    expect(await at('--param', 'users_min=1')).toContain('acme-3')
    const early = ['--from', '2020-01-01', '--to', '2020-02-01T00:00:00Z']
    expect(await at('--param', 'users_min=1', ...early)).toBe('There are no rows in this time.\n')
    await expect(at('--param', 'nothing=1')).rejects.toThrow('it has users_min')
    await expect(at('--param', 'users_min')).rejects.toThrow('NAME=VALUE')
    await expect(at('--param', 'users_min=many')).rejects.toThrow('query_failed')
    await expect(at('--from', 'soon')).rejects.toThrow('soon is not a time')
    await expect(at('--csv', '--json')).rejects.toThrow('one of')
    await expect(di('run', 'acme', 'nothing')).rejects.toThrow('di cookbook list')
    await expect(di('run', 'nobody', '23')).rejects.toThrow('tenant_not_found')
  })

  it('reads the tenant that it names and no other', async () => {
    const both = await Promise.all(
      ['acme', 'globex'].map((slug) => di('run', slug, '2', '--param', 'users_min=1', '--csv')),
    )
    expect(both[0]).not.toContain('globex')
    expect(both[1]).not.toContain('acme')
    expect(lineCount(both[1]!)).toBeGreaterThan(1)
  })
})
