/**
 * What the console's pages say of networks and countries, in a real browser on a real stack. Events
 * are put into the stores directly, since the addresses of a test are not of the internet.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { decideAlert } from '#shared/core/alerts/decide-alert.ts'
import type { EventConnection } from '#shared/core/network/event-connection.ts'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import type { Policy } from '#shared/core/policies/policy.ts'
import type { AcceptedEvent } from '#shared/core/telemetry/event-batch.ts'
import { raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import { settle } from '../../support/console/browser.ts'
import { tellStory } from '../../support/console/story.ts'
import { testLog } from '../../support/http/console-rig.ts'
import { admin } from '../../support/http/tenant-client.ts'
import { runDi } from '../../support/process/command-line.ts'
import { type EventFacts, makeEvents, signalsOf } from '../../support/telemetry/accepted-events.ts'
import {
  hostingConnection,
  plainConnection,
  unknownConnection,
} from '../../support/telemetry/connections.ts'

const slug = 'networks'
const minuteMs = 60_000
const others = 12
/** Texts that a database may have, and that no page may cut a layout with. */
const longConnection: EventConnection = {
  network: '2001:db8:ffff::/48',
  address_hash: 'DDDDDDDDDDDDDDDDDDDDDD',
  country: 'BR',
  asn: 4_294_967_294,
  organization: `<b>Example</b> Telecomunicações ${'e Participações '.repeat(5)}S.A.`,
  kinds: ['mobile', 'proxy', 'relay', 'tor', 'vpn'],
}

/** Of whom there are more on a network than a household has. */
const policy: Policy = {
  ...defaultPolicy,
  velocity: [{ metric: 'devices_per_network', windowSeconds: 86_400, threshold: 5, weight: 15 }],
}

const story = tellStory(slug)
const { expectNoFault, readTable } = story
const read = <T>(path: string) => story.read<T>(`/${path}`)
let events: AcceptedEvent[]

beforeAll(async () => {
  await admin(story.stack, 'PUT', `/tenants/${slug}/policy`, policy)
  await fill()
})

/** One phone on four networks, others on its last one, and a phone that was never measured. */
async function fill(): Promise<void> {
  const now = Date.now()
  const at = (minutes: number) => now - minutes * minuteMs
  const connections = [unknownConnection, longConnection, plainConnection, hostingConnection]
  const phone = { tenantId: slug, deviceId: 'phone', userId: 'eve', signals: signalsOf.BLOCK }
  const facts: EventFacts[] = [
    ...connections.map((connection, n) => ({
      ...phone,
      sessionId: `p-${n}`,
      receivedAtMs: at(100 - 10 * n),
      connection,
    })),
    ...Array.from({ length: others }, (_, n) => ({
      tenantId: slug,
      deviceId: `other-${n}`,
      sessionId: `o-${n}`,
      receivedAtMs: at(40 - n),
      connection: hostingConnection,
    })),
    { tenantId: slug, deviceId: 'dark', sessionId: 'd', userId: 'bob', receivedAtMs: at(5) },
  ]
  events = makeEvents(facts.map((one) => ({ ...one, policy })))
  const clickhouse = createClickhouse(story.stack.clickhouse, { name: 'test' })
  const postgres = createPostgres(story.stack.postgres, { role: 'test', log: testLog })
  await createTelemetryStore(clickhouse).insertTelemetry(events)
  // As the scorer decides the last event on the busy network: more devices than the rule allows.
  const busy = events[4 + others - 1]!
  const evidence = { metric: 'devices_per_network', count: others + 1, threshold: 5, window: '1d' }
  const reasons = [...busy.reasons, { code: 'HIGH_VELOCITY', weight: 15, evidence } as const]
  const risk = { riskScore: busy.rasp_score + 15, action: busy.rasp_action, reasons }
  await createDecisionWriter(clickhouse).insertDecisions([{ event: busy, risk }])
  const alerts = events.flatMap((event) => {
    const { rasp_score: riskScore, rasp_action: action, reasons } = event
    return decideAlert(event, { riskScore, action, reasons }) ?? []
  })
  await raiseAlerts(postgres, alerts, Date.now)
  await Promise.all([clickhouse.close(), postgres.close()])
}

async function open(path: string): Promise<void> {
  await story.goto(path)
  await settle(story.page)
}

const fact = (name: string) =>
  story.page
    .locator('dt', { hasText: new RegExp(`^${name}$`) })
    .locator('xpath=following-sibling::dd[1]')

describe('the pages', () => {
  it('of a device show its networks, and the other devices on the last one', async () => {
    await open('devices/phone')
    expect(await readTable('Networks of the sessions')).toMatchObject(
      [
        ['203.0.113.0/24', 'DE', 'AS64500Example Hosting Ltd', 'vpn\nhosting', '1', {}],
        ['2001:db8:7::/48', 'GB', 'not known', '', '1', {}],
        ['2001:db8:ffff::/48', 'BR', expect.stringContaining('<b>Example</b>'), {}, '1', {}],
        ['198.51.100.0/24', 'not known', 'not known', '', '1', {}],
      ].map((row) => row.map((cell) => (typeof cell === 'string' ? cell : expect.any(String)))),
    )
    await story.page.getByText('4 networks in 3 countries').waitFor()
    expect(await fact('Connection').textContent()).toMatch(/^DE\s*AS64500\s*Example Hosting Ltd/)
    const answer = await read<{ data: { device_id: string }[]; total: number }>(
      'devices/phone/network',
    )
    expect(answer.total).toBe(others)
    const shown = await readTable('Other devices on this network')
    expect(shown.map(([id]) => id)).toEqual(answer.data.map((one) => one.device_id))
    await expectNoFault()
  })

  it('of a device without a measured connection say so, and ask for no others', async () => {
    await open('devices/dark')
    expect(await fact('Connection').textContent()).toBe('not measured')
    expect(await story.page.getByText('Other devices on this network').count()).toBe(0)
    await expectNoFault()
  })

  it('of an event show where it came from, and what was counted of its network', async () => {
    const [first, , , last] = events
    await open(`events/${last!.event_id}`)
    expect(await fact('Connection').textContent()).toMatch(
      /^DE\s*AS64500\s*Example Hosting Ltd\s*203\.0\.113\.0\/24\s*vpn\s*hosting$/,
    )
    await expectNoFault()
    // Counted as of its place in the stream: one of the others was the sixth device there.
    await open(`events/${events[4 + others - 1]!.event_id}`)
    await story.page.getByText(`devices per network: ${others + 1} in 1 day`).waitFor()
    await open(`events/${first!.event_id}`)
    await fact('Connection').getByText('198.51.100.0/24').waitFor()
  })

  it('have a line of the command line each, for a device and for an event', async () => {
    const { stack } = story
    const env = { CONSOLE_URL: stack.console, ADMIN_TOKEN: stack.admin_token }
    const line = /^connection +DE, AS64500 Example Hosting Ltd, 203\.0\.113\.0\/24, vpn, hosting$/m
    expect((await runDi(['devices', 'show', slug, 'phone'], env)).stdout).toMatch(line)
    const dark = await runDi(['devices', 'show', slug, 'dark'], env)
    expect(dark.stdout).toMatch(/^connection +not measured$/m)
    expect((await runDi(['explain', events[3]!.event_id], env)).stdout).toMatch(line)
  })

  it('of a user show the networks of its sessions', async () => {
    await open('users/eve')
    const networks = await readTable('Networks of the sessions')
    expect(networks.map(([network]) => network)).toEqual([
      hostingConnection.network,
      plainConnection.network,
      longConnection.network,
      unknownConnection.network,
    ])
    await expectNoFault()
  })

  it('of an alert show where its event came from, and lead to the alerts from there', async () => {
    type Answer = { total: number; data: { alert_id: string }[] }
    const { data } = await read<Answer>('alerts?country=BR')
    for (const [link, query] of [
      ['2001:db8:ffff::/48', { network: '2001:db8:ffff::/48' }],
      ['AS4294967294', { asn: '4294967294' }],
      ['BR', { country: 'BR' }],
    ] as const) {
      await open(`alerts?alert=${data[0]!.alert_id}`)
      await fact('Connection').getByText('2001:db8:ffff::/48').waitFor()
      if (link === 'BR') await expectNoFault()
      await fact('Connection').getByRole('link', { name: link, exact: true }).click()
      await story.page.waitForURL((url) => !url.searchParams.has('alert'))
      expect(Object.fromEntries(new URL(story.page.url()).searchParams)).toEqual(query)
      const found = await read<Answer>(`alerts?${new URLSearchParams(query)}`)
      expect(found).toMatchObject({ total: 1, data: [{ alert_id: data[0]!.alert_id }] })
      await story.page.getByText('1 alert', { exact: false }).first().waitFor()
    }
  })

  it('of the fleet show countries and networks as the API counts them', async () => {
    await open('fleet')
    type Counted = { devices: number; events: number }
    type Answer = {
      countries: (Counted & { country: string })[]
      networks: (Counted & { connection: { network: string } })[]
    }
    const answer = await read<Answer>('fleet/networks')
    expect(answer.countries.map(({ country }) => country)).toEqual(['DE', 'BR', 'GB'])
    const countries = await readTable('Countries')
    expect(countries.map((row) => row.slice(0, 3))).toEqual(
      answer.countries.map((one) => [one.country, `${one.devices}`, `${one.events}`]),
    )
    const networks = await readTable('Networks')
    expect(networks.map(([network]) => network)).toEqual(
      answer.networks.map((one) => one.connection.network),
    )
    await expectNoFault()
  })

  it('of the overview have a line with the shares of VPNs and data centres', async () => {
    await open('overview')
    const line = story.page.locator('p', { hasText: 'Events came from' })
    // 16 of 17 events are measured; 14 of those came over a VPN or the like.
    expect(await line.textContent()).toBe(
      'Events came from 3 countries: 88 % over a VPN, a proxy, a relay or Tor, 81 % from data ' +
        'centres. 94 % of the events were measured.',
    )
    await expectNoFault()
    await line.getByRole('link').click()
    await story.page.getByRole('heading', { name: 'Fleet', exact: true }).waitFor()
  })
})
