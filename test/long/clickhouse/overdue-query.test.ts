/** A query of an analyst that the embedded engine cannot end does not keep a core of the machine. */
import { expect, it } from 'vitest'
import { analystUser, toAnalystPassword } from '../../../deploy/local/clickhouse/server-config.ts'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'
import { startClickhouse } from '../../support/servers/clickhouse-server.ts'

const password = 'test'
const asAnalyst = {
  'x-clickhouse-user': analystUser,
  'x-clickhouse-key': toAnalystPassword(password),
}

it('the engine ends with a query that outlived its time limit', async () => {
  const engine = await startClickhouse({ password, isMigrated: true })
  const { host } = new URL(engine.url)
  const run = (body: string) =>
    callClickhouse(`http://${host}`, {
      headers: asAnalyst,
      params: { max_execution_time: '1', query_id: body.slice(0, 12).trim() },
      body,
    })
  try {
    expect((await run('select 1')).text).toBe('1\n')
    // One call of one function, for a quarter of an hour.
    const endless = run(`select countMatches(repeat('a', 300000), 'a.*b|a')`).catch(() => 'cut off')
    expect(await engine.ended).toBe(1)
    expect(await endless).toBe('cut off')
    expect(engine.complaint()).toContain(`outlived its time limit: select count`)
  } finally {
    await engine.stop()
  }
})
