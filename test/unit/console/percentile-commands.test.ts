// `di devices show` and `di alerts show`: where a risk score stands in the fleet.
import { Command } from 'commander'
import { expect, it } from 'vitest'
import { alertExample } from '../../../services/api/openapi/examples.ts'
import { alerts } from '../../../services/console/cli/alerts/alerts.ts'
import type { CliContext } from '../../../services/console/cli/context.ts'
import { devices } from '../../../services/console/cli/entities.ts'

/** @param answers by the end of the path */
async function run(answers: Record<string, unknown>, ...args: string[]): Promise<string> {
  let printed = ''
  const context = {
    adminFetch: async (_: string, path: string) => answers[path.split('/').at(-1)!],
    out: (value: unknown, toText: (value: never) => string) => {
      printed = toText(value as never)
    },
  }
  const program = new Command('di').exitOverride()
  for (const add of [devices, alerts]) add(program, context as unknown as CliContext)
  await program.parseAsync(args, { from: 'user' })
  return printed
}

const device = {
  device_id: 'phone',
  first_seen_at: '2026-01-02T03:04:05.678Z',
  last_seen_at: '2026-01-02T03:04:05.678Z',
  risk_score: 82,
  peak_rasp_score: 48,
  install: null,
  connection: null,
  sessions: [],
  sessions_total: 0,
  users_seen_on: [],
}

const showDevice = (more: object) => {
  const page = { device: { ...device, ...more }, alerts: { total: 0, data: [] } }
  const changes = { data: [], total: 0, complete_from: null }
  const links = { data: [], total: 0, complete: true, sessions_searched: true }
  const answers = { phone: page, 'signal-changes': changes, links }
  return run(answers, 'devices', 'show', 'acme', 'phone')
}

it('a device has the percentile of its risk score, and none while it is not known', async () => {
  const text = await showDevice({ risk_percentile: 99.2 })
  expect(text).toMatch(/^risk_score +82, higher than 99\.2 % of your fleet$/m)
  expect(await showDevice({})).toMatch(/^risk_score +82$/m)
})

it('so has an alert', async () => {
  const { risk_score: score } = alertExample.decision
  const detail = { alert: alertExample, history: [], notes: [], risk_percentile: 80 }
  const show = (more: object) => run({ alr_1: { ...detail, ...more } }, 'alerts', 'show', 'alr_1')
  const line = `Risk score ${score}, higher than 80.0 % of your fleet`
  expect((await show({})).split('\n')).toContain(line)
  expect((await show({ risk_percentile: undefined })).split('\n')).toContain(`Risk score ${score}`)
})
