/**
 * What a verdict token costs the event loop of an edge: deciding on an event that asks for one,
 * beside the same event that asks for none. Rounds interleaved, medians, CPU time of the process.
 */
import { createPrivateKey } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createVerdictSigner } from '#shared/core/verdicts/verdict-token.ts'
import { createLog } from '#shared/io/process/log.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { createVerdictIssuer } from '../../../services/ingest/verdicts/issue-verdict.ts'
import { publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { createDecidingEdge, measureDeciding, sign } from './deciding-edge.ts'
import { createSubmissions } from './submissions.ts'

const rounds = 9
const repeats = 4_000

const { jwk, privateKey } = makeVerdictKey()
const key = createPrivateKey({
  key: Buffer.from(privateKey, 'base64'),
  format: 'der',
  type: 'pkcs8',
})
const signer = createVerdictSigner(jwk.kid, key)

const edge = createDecidingEdge({
  issueVerdict: createVerdictIssuer({
    findSigner: () => signer,
    issuer: 'https://di.example.com',
    log: createLog('bench', 'silent'),
  }),
})

/** @throws on any option: it has none */
export function run(args: string[]): void {
  parseArgs({ args, options: {} })
  const next = createSubmissions('acme', 'verdict')
  const texts = Array.from({ length: repeats }, next)
  const plain = texts.map(sign)
  const member = '{"verdict":{"audience":"checkout","nonce":"sJ0h6m1vQ2yqk3a9c8Xw4g"},'
  const asking = texts.map((text) => sign(text.replace('{', member)))
  const [withToken, without]: [number[], number[]] = [[], []]
  for (let round = -2; round < rounds; round++) {
    const pair = [measureDeciding(asking, edge), measureDeciding(plain, edge)] as const
    if (round < 0) continue
    withToken.push(pair[0])
    without.push(pair[1])
  }
  publishReport({
    part: 'verdict',
    command: 'npm run bench -- verdict',
    versions: {},
    durability: 'nothing is stored',
    figures: [
      {
        name: 'deciding on an event with a verdict token',
        unit: 'µs',
        value: toSpread(withToken),
        baseline: { name: 'the same without', value: toSpread(without) },
        ratio: toRatios(withToken, without),
      },
      {
        name: 'the token alone',
        unit: 'µs',
        value: toSpread(withToken.map((cost, round) => cost - without[round]!)),
        bound: { of: 'value', atMost: 150 },
      },
    ],
    checks: [],
  })
}
