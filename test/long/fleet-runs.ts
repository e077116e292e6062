/**
 * `di fleet` against a real stack: everything that it sends arrives in every store, and it reports
 * that; it would report anything missing. The run is small, the comparison is complete.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Summary } from '../../deploy/fleet/check/summary.ts'
import type { InstallsSummary } from '../../deploy/fleet/installs/installs-summary.ts'
import { admin, createTenant } from '../support/http/tenant-client.ts'
import type { TestStack } from '../support/process/stack.ts'
import { until } from '../support/process/until.ts'

/** Tests on the stack of the file that calls this. */
export function describeFleetRuns(getRunning: () => TestStack): void {
  const cli = fileURLToPath(new URL('../../services/console/cli.ts', import.meta.url))

  let running: TestStack
  const secrets = mkdtempSync(join(tmpdir(), 'fleet-secrets-'))

  beforeAll(() => {
    running = getRunning()
  })

  afterAll(() => rmSync(secrets, { recursive: true, force: true }))

  type Fleet = { child: ChildProcess; progress: () => string; ended: Promise<Ended> }
  type Ended = { code: number | null; summary: Summary; progress: string }

  /** Runs the command as a person would, with `--json`. */
  function startFleet(...args: string[]): Fleet {
    const env = { ...process.env, DATA_DIR: running.dataDir }
    const child = spawn(process.execPath, [cli, 'fleet', '--json', ...args], { env })
    let out = ''
    let progress = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      progress += text
    })
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('close', (code) => {
        try {
          resolve({ code, summary: JSON.parse(out) as Summary, progress })
        } catch {
          reject(new Error(`fleet printed no JSON (status ${code}): ${out}${progress}`))
        }
      })
    })
    return { child, progress: () => progress, ended }
  }

  const right = (ended: Ended) => ({ code: ended.code, mismatches: ended.summary.mismatches })

  describe('di fleet', () => {
    it('with --installs finds that the service says of every phone what it is', async () => {
      const run = startFleet('--installs', '--devices', '40', '--seed', '7', '--settle', '60')
      const { code, summary, progress } = await run.ended
      const installs = summary as unknown as InstallsSummary
      expect({ mismatches: installs.mismatches, notes: installs.notes }).toEqual({
        mismatches: [],
        notes: [],
      })
      expect(code, progress).toBe(0)
      expect(installs.registered.verified).toBeGreaterThan(50)
      expect(installs.attacks.every(({ tried, refused }) => tried > 0 && refused === tried)).toBe(
        true,
      )
      expect(installs.signals?.counts).toMatchObject({
        missing: installs.events.by_the_secret,
        ATTESTATION_KEY_SHARED: 34,
        COUNTER_REUSED: 1,
      })
    })

    it('finds every device, session, alert and webhook of its own tenant as expected', async () => {
      const run = ['--devices', '80', '--rate', '80', '--duration', '8', '--seed', '7', '--receive']
      const ended = await startFleet(...run).ended
      expect(right(ended)).toEqual({ code: 0, mismatches: [] })
      const { summary } = ended
      expect(summary).toMatchObject({
        seed: 7,
        sent: 640,
        accepted: 640,
        refused: 0,
        unknown: 0,
        duplicates_sent: 12,
        devices: 80,
        checked: ['answers', 'devices', 'alerts', 'webhooks'],
        webhooks: { missing: 0, unverified: 0 },
        ok: true,
      })
      expect(summary.tenant_id).toMatch(/^fleet-[0-9a-f]{10}$/)
      expect(summary.alerts!.total).toBeGreaterThan(20)
      expect(summary.webhooks!.alerts).toBe(summary.alerts!.total)
      expect(summary.visible_ms!.count).toBeGreaterThan(5)
      const sql = `select connection_organization, connection_country, connection_kinds,
        uniqExact(connection_network), count() from events group by all order by 1`
      const path = `/tenants/${summary.tenant_id}/sql`
      const body = { sql, parameters: {} }
      type Rows = { rows: [string, string, string[], string, string][] }
      const { rows } = await admin<Rows>(running.stack, 'POST', path, body)
      expect(rows.map(([name, country, kinds]) => [name, country, kinds])).toEqual([
        ['Example Home Broadband', 'BE', []],
        ['Example Hosting', 'NL', ['hosting']],
        ['Example Privacy VPN', 'CH', ['vpn']],
      ])
      const [home, ...others] = rows.map(([, , , networks]) => Number(networks))
      expect(home).toBeGreaterThan(40)
      expect(others).toEqual([1, 1])
      const events = rows.reduce((sum, row) => sum + Number(row[4]), 0)
      expect(events).toBe(summary.sent - summary.duplicates_sent)
    })

    it('still compares the sent events when it is interrupted', async () => {
      const fleet = startFleet('--devices', '50', '--rate', '50', '--duration', '60')
      await until('the run to be under way', () => /accepted [1-9]/.test(fleet.progress()))
      fleet.child.kill('SIGINT')
      const ended = await fleet.ended
      expect(right(ended)).toEqual({ code: 0, mismatches: [] })
      expect(ended.summary.interrupted).toBe(true)
      expect(ended.summary.sent).toBeLessThan(3_000)
    })

    it('reports to a given tenant, and fails when that tenant gets wrong answers', async () => {
      const tenant = await createTenant(running.stack, 'given')
      const file = (name: string, text: string) => {
        writeFileSync(join(secrets, name), `${text}\n`, { mode: 0o600 })
        return join(secrets, name)
      }
      const key = ['--api-key-file', file('key', tenant.public_api_key)]
      const small = ['--tenant', 'given', '--devices', '10', '--rate', '40', '--duration', '2']
      const good = ['--hmac-secret-file', file('hmac', tenant.hmac_secret)]
      expect(right(await startFleet(...small, ...key, ...good).ended)).toEqual({
        code: 0,
        mismatches: [],
      })
      const wrong = ['--hmac-secret-file', file('wrong', 'x'.repeat(43))]
      const { code, summary } = await startFleet(...small, ...key, ...wrong).ended
      expect(code).toBe(1)
      expect(summary).toMatchObject({ ok: false, accepted: 0, refused: 80 })
      expect(summary.mismatches_by_kind).toEqual({ telemetry_refused: 80 })
    })
  })
}
