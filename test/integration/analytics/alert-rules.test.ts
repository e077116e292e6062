/**
 * The alert rules fire when they must and not earlier, and the operators' dashboard has queries
 * that can be parsed, by Prometheus' own tool.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
import dashboard from '../../../deploy/grafana/provisioning/dashboards/operations.json' with {
  type: 'json',
}
import { findDebianProgram } from '../../support/servers/debian-program.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
let promtool: string

beforeAll(async () => {
  const packages = { bookworm: ['prometheus'], trixie: ['prometheus'] }
  promtool = (await findDebianProgram('usr/bin/promtool', packages)).file
})

it.each([
  ['are well formed', ['check', 'rules', 'deploy/prometheus/alerts.yaml']],
  ['fire in every case of the vectors', ['test', 'rules', 'test/vectors/prometheus-alerts.yaml']],
  [
    'are read by the configuration of compose',
    ['check', 'config', 'deploy/prometheus/prometheus.yaml'],
  ],
])('the rules %s', (_, args) => run(args))

it('every query of the operators’ dashboard can be parsed, with its variables filled in', () => {
  const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  expect(expressions.length).toBeGreaterThan(10)
  const rules = expressions.map((expr, at) => ({
    record: `panel_${at}`,
    expr: expr.replaceAll('$__rate_interval', '1m'),
  }))
  const dir = mkdtempSync(join(tmpdir(), 'di-panels-'))
  // YAML contains JSON.
  writeFileSync(join(dir, 'panels.yaml'), JSON.stringify({ groups: [{ name: 'panels', rules }] }))
  run(['check', 'rules', join(dir, 'panels.yaml')])
  rmSync(dir, { recursive: true })
})

function run(args: string[]): void {
  const { status, stdout, stderr, error } = spawnSync(promtool, args, {
    cwd: root,
    encoding: 'utf8',
  })
  expect(error).toBeUndefined()
  expect(`${stdout}${stderr}`).toContain('SUCCESS')
  expect(status, `${stdout}${stderr}`).toBe(0)
}
