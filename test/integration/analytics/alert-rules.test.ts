/** The alert rules fire when they must and not earlier, by Prometheus' own tool. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
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
])('the rules %s', (_, args) => {
  const { status, stdout, stderr, error } = spawnSync(promtool, args, {
    cwd: root,
    encoding: 'utf8',
  })
  expect(error).toBeUndefined()
  expect(`${stdout}${stderr}`).toContain('SUCCESS')
  expect(status, `${stdout}${stderr}`).toBe(0)
})
