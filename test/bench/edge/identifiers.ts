/**
 * What the phone of an event costs the event loop of an edge: deciding on an event with traits and
 * three identifiers, and with traits alone, beside the same event without. Rounds interleaved,
 * medians, CPU time of the process.
 */
import { createSecretKey, randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { addressKeyBytes } from '#shared/core/tenants/client-address.ts'
import { publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { createDecidingEdge, measureDeciding, sign } from './deciding-edge.ts'
import { createSubmissions } from './submissions.ts'

const rounds = 9
const repeats = 4_000

const traits = {
  brand: 'Google',
  model: 'Pixel 9',
  os_version: '16',
  build: 'BP2A.250605.031.A3',
  storage_bytes: 128e9,
  memory_bytes: 12e9,
  screen: '1080x2424',
  locale: 'de-DE',
  time_zone: 'Europe/Berlin',
  boot_at: 1_772_172_764_120,
}
const identifiersOf = (n: number) => ({
  keychain_id: `6f1c0a52-7d1e-4d7b-9a57-${n.toString(16).padStart(12, '0')}`,
  android_id: n.toString(16).padStart(16, '9'),
  media_drm_id: Buffer.alloc(32, n).toString('base64'),
})

/** @throws on any option: it has none */
export function run(args: string[]): void {
  parseArgs({ args, options: {} })
  const edge = createDecidingEdge({ addressKey: createSecretKey(randomBytes(addressKeyBytes)) })
  const next = createSubmissions('acme', 'identifiers')
  const texts = Array.from({ length: repeats }, next)
  const withDevice = (text: string, device: object) =>
    sign(text.replace('"signals":', `"device":${JSON.stringify(device)},"signals":`))
  const kinds = {
    without: texts.map(sign),
    traits: texts.map((text) => withDevice(text, traits)),
    identifiers: texts.map((text, n) =>
      withDevice(text, { ...traits, identifiers: identifiersOf(n) }),
    ),
  }
  const costs: Record<keyof typeof kinds, number[]> = { without: [], traits: [], identifiers: [] }
  for (let round = -2; round < rounds; round++) {
    for (const kind of ['without', 'traits', 'identifiers'] as const) {
      const cost = measureDeciding(kinds[kind], edge)
      if (round >= 0) costs[kind].push(cost)
    }
  }
  const figureOf = (name: string, kind: 'traits' | 'identifiers') => ({
    name,
    unit: 'µs',
    value: toSpread(costs[kind]),
    baseline: { name: 'the same without a phone', value: toSpread(costs.without) },
    ratio: toRatios(costs[kind], costs.without),
  })
  publishReport({
    part: 'identifiers',
    command: 'npm run bench -- identifiers',
    versions: {},
    durability: 'nothing is stored',
    figures: [
      figureOf('deciding on an event with traits', 'traits'),
      figureOf('deciding on an event with traits and three identifiers', 'identifiers'),
    ],
    checks: [],
  })
}
