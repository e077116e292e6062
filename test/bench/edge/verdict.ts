/**
 * What a verdict token costs the event loop of an edge: deciding on an event that asks for one,
 * beside the same event that asks for none. Rounds interleaved, medians, CPU time of the process.
 */
import { createPrivateKey, createSecretKey } from 'node:crypto'
import { parseArgs } from 'node:util'
import { defaultPolicy } from '#shared/core/policies/default-policy.ts'
import { compilePolicy } from '#shared/core/scoring/scoring.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import { createVerdictSigner } from '#shared/core/verdicts/verdict-token.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { Tenant } from '#shared/io/tenants/directory/tenant-copy.ts'
import { makeVerdictKey } from '#shared/io/verdicts/make-verdict-key.ts'
import { type DecideDeps, decideSubmission } from '../../../services/ingest/decide-submission.ts'
import { createVerdictIssuer } from '../../../services/ingest/verdicts/issue-verdict.ts'
import { decoyRoot, noInstalls } from '../../support/installs/install-roots.ts'
import { publishReport } from '../report.ts'
import { toRatios, toSpread } from '../spread.ts'
import { createSubmissions } from './submissions.ts'

const rounds = 9
const repeats = 4_000

const secret = createSecretKey(Buffer.from('s'.repeat(43)))
const { jwk, privateKey } = makeVerdictKey()
const key = createPrivateKey({
  key: Buffer.from(privateKey, 'base64'),
  format: 'der',
  type: 'pkcs8',
})
const signer = createVerdictSigner(jwk.kid, key)

const tenant: Tenant = {
  tenantId: 'acme',
  environment: 'live',
  status: 'active',
  epoch: 1,
  key: secret,
  retired: null,
  policyVersion: 1,
  policyHash: 'a'.repeat(32),
  policy: { hash: '', thresholds: defaultPolicy.thresholds, score: compilePolicy(defaultPolicy) },
  limiter: null,
  byteLimiter: null,
  undecidedShare: 0.25,
  telemetryStream: 1,
  ingestAnswer: 'full',
  clientAddress: 'connection',
  isAddressStored: false,
  addressKey: null,
  ...noInstalls,
  lists: { usable: () => true, find: () => [], findOfConnection: () => [] },
  fault: null,
}
const deps: DecideDeps = {
  findTenant: () => tenant,
  leaseValid: () => true,
  keysKnown: () => true,
  mayWait: () => true,
  shares: { note: () => undefined, take: () => 0 },
  verify: verifySignature,
  decoyKey: secret,
  decoyRoot,
  nowMs: () => performance.now(),
  wallMs: Date.now,
  issueVerdict: createVerdictIssuer({
    findSigner: () => signer,
    issuer: 'https://di.example.com',
    log: createLog('bench', 'silent'),
  }),
}

type Signed = { body: Buffer; signature: string }

const sign = (text: string): Signed => {
  const body = Buffer.from(text)
  return { body, signature: signBody(body, secret) }
}

/** @returns µs of CPU per event */
function measure(events: readonly Signed[]): number {
  const before = process.cpuUsage()
  for (const { body, signature } of events)
    decideSubmission(body, { signature, install: undefined }, deps)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / events.length
}

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
    const pair = [measure(asking), measure(plain)] as const
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
