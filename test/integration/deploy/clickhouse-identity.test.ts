// The embedded engine runs as its own operating-system user: started by root, it can read neither
// root's files nor root's environment, for any query.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse, type TestClickhouse } from '../../support/servers/clickhouse-server.ts'

describe.runIf(process.getuid?.() === 0)('the engine that root starts', () => {
  let folder: string
  let engine: TestClickhouse
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'identity-'))
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'secrets.json'), 'MASTER_KEY', { mode: 0o600 })
    // The state that an earlier version left, with root as the owner.
    mkdirSync(join(folder, 'clickhouse/run'), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, 'clickhouse/run/users.xml'), '', { mode: 0o600 })
    engine = await startClickhouse({ path: join(folder, 'clickhouse') })
  })
  afterAll(async () => {
    await engine?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is another user', () => {
    const status = readFileSync(`/proc/${engine.pid}/status`, 'utf8')
    expect(status).toMatch(/^Uid:\t65533\t65533\t65533\t65533$/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
  })

  it.each(['secrets.json', '/proc/self/environ', '/etc/shadow'])(
    'reads no secret: %s',
    async (name) => {
      const path = name.startsWith('/') ? name : join(folder, name)
      const body = `select length(file('${path}'))`
      const { text } = await callClickhouse(engine.url, { method: 'POST', body })
      expect(text).toContain('Permission denied')
    },
  )

  it('reports where it cannot change the user', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'closed-'))
    const other = await startClickhouse({ path: join(closed, 'clickhouse') })
    try {
      expect(readFileSync(`/proc/${other.pid}/status`, 'utf8')).toMatch(/^Uid:\t0\t/m)
      expect(other.complaint()).toContain(`only root may enter ${closed}`)
    } finally {
      await other.stop()
      rmSync(closed, { recursive: true, force: true })
    }
  })
})
