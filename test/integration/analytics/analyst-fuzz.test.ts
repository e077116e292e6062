// Statements composed of many spellings, decoys and places: none gives an analyst a file of the
// machine or a row of another tenant. Without the protection the same statements do, which proves
// that they are valid attacks.
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { filePlaces } from '../../support/analytics/analyst-file-attempts.ts'
import { type AnalystsRig, createAnalystsRig } from '../../support/analytics/analysts-rig.ts'
import { callClickhouse } from '../../support/servers/clickhouse-request.ts'

const canary = `canary-${process.pid}`
const path = join(tmpdir(), `${canary}.txt`)
const secretText = `secret of ${canary.split('').reverse().join('')}`

let rig: AnalystsRig
beforeAll(async () => {
  writeFileSync(path, secretText)
  rig = await createAnalystsRig()
})
afterAll(() => {
  rmSync(path, { force: true })
  return rig?.close()
})

/** Expressions in the place of a function's name. */
const spelling = fc.constantFrom(
  'file',
  '`file`',
  '"file"',
  '“file”',
  '`f\\x69le`',
  '"fil\\x65"',
  '`\\146ile`',
  'FILE',
  'file/**/',
  "file/*'*/",
  "file --'\n",
  'file\u00a0',
  'file\n',
  '{f:Identifier}',
  '{f: Identifier}',
)
const literal = fc.constantFrom(
  `'${path}'`,
  `$$${path}$$`,
  `$a$${path}$a$`,
  `‘${path}’`,
  `x'${Buffer.from(path).toString('hex')}'`,
  `concat('${path.slice(0, 4)}', '${path.slice(4)}')`,
  '{p:String}',
)
/** Names, strings and comments that a parser may misread. */
const decoy = fc.constantFrom(
  '',
  "1 as `'`,",
  '1 as `"`,',
  '1 as "`",',
  "1 as `''`,",
  '1 as `\\\\`,',
  "'/*',",
  "'--',",
  "'\\'',",
  "'\\\\',",
  "'''',",
  "$$'$$,",
  '$$`$$,',
  "$x$'$$$x$,",
  "/* ' */ 1,",
  '/* /* ` */ */ 1,',
  '1, -- \' ` "\n',
  "1, # '\n",
  "‘'’,",
  "1 as “'”,",
)
const place = fc.constantFrom(...filePlaces.map(({ what }) => what).filter((w) => w.includes('‹›')))
const wrap = fc.constantFrom(
  '‹q›',
  '(‹q›)',
  'select * from (‹q›)',
  'select * from view(‹q›)',
  'with w as (‹q›) select * from w',
  '‹q› union all ‹q›',
  'explain query tree ‹q›',
  "select count() from events where 1 in (‹q›) -- '",
  "‹q› /* ' */",
  '‹q›;',
)

const statement = fc
  .record({ name: spelling, argument: literal, decoy, place, wrap })
  .map(({ name, argument, decoy: before, place: where, wrap: around }) => {
    const text = where
      .replace(/^select (?!sum|count|columns|\*)/, `select ${before} `)
      .replaceAll('file', name)
      .replaceAll('‹›', argument)
    return around.replaceAll('‹q›', () => text)
  })
const params = { param_f: 'file', param_p: path }

it('no composed statement reads a file', async () => {
  let served = 0
  await fc.assert(
    fc.asyncProperty(statement, async (query) => {
      const { status, text } = await rig.runQuery({ query, params })
      if (status === 200) served++
      expect(text).not.toContain(secretText)
    }),
    { numRuns: 300 },
  )
  // No statement that names the function is answered.
  expect(served).toBe(0)
})

it('many of them read it without the protection', async () => {
  const url = new URL(rig.engine.url)
  let read = 0
  for (const query of fc.sample(statement, 200)) {
    const reply = await callClickhouse(url.href, { method: 'POST', body: query, params })
    if (reply.text.includes(secretText)) read++
  }
  expect(read).toBeGreaterThan(20)
})

/** Sources behind the views, and conditions that would reveal their rows. */
const source = fc.constantFrom(
  'events',
  'analytics.events',
  '`analytics`.`events`',
  'device_intelligence.telemetry',
  '`device_intelligence`."telemetry"',
  "merge('device_intelligence', 'telemetry')",
  "remote('127.0.0.1', 'device_intelligence', 'telemetry')",
  "cluster('default', 'device_intelligence', 'telemetry')",
  'view(select * from device_intelligence.telemetry)',
  'loop(device_intelligence.telemetry)',
  "mergeTreeIndex('device_intelligence', 'telemetry')",
  '{d:Identifier}.{t:Identifier}',
)
const filter = fc.constantFrom(
  '',
  "where tenant_id = 'globex'",
  "where tenant_id != 'acme'",
  "prewhere tenant_id = 'globex'",
  "where throwIf(tenant_id != 'acme', concat('seen ', device_id)) = 0",
  "where toUInt64OrDefault(device_id) = 0 and startsWith(device_id, 'globex')",
  "where 1 or tenant_id = 'globex'",
  "where device_id in (select device_id from events where tenant_id = 'globex')",
  "settings optimize_move_to_prewhere = 0, additional_table_filters = {'events': '1'}",
  "where toUInt64(replaceOne(device_id, 'acme-', '')) >= 0",
)
const columns = fc.constantFrom('*', 'device_id', 'any(device_id)', 'groupArray(tenant_id)', 'body')

it('no composed statement reveals another tenant’s rows', async () => {
  const rows = fc.record({ columns, source, filter, decoy, wrap }).map((one) => {
    const text = `select ${one.decoy} ${one.columns} from ${one.source} ${one.filter}`
    return one.wrap.replaceAll('‹q›', () => text)
  })
  const names = { param_d: 'device_intelligence', param_t: 'telemetry' }
  let served = 0
  await fc.assert(
    fc.asyncProperty(rows, async (query) => {
      const { status, text } = await rig.runQuery({ query, params: names })
      if (status === 200) served++
      expect(text).not.toMatch(/globex-|alr_globex|of globex/)
    }),
    { numRuns: 200 },
  )
  expect(served).toBeGreaterThan(20)
})
