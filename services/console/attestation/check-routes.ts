/** The route that says why evidence of a phone is rejected: the steps of the check, on a file. */
import { hash, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { checkAssertion } from '#shared/core/attestation/app-attest-assertion.ts'
import type { AttestedApp } from '#shared/core/attestation/apps.ts'
import { decodeBase64, readKeyFile } from '#shared/core/attestation/encodings.ts'
import { readPlayKeys } from '#shared/core/attestation/play-keys.ts'
import { recognizeFile } from '#shared/core/attestation/recognize.ts'
import { type AttestationCheck, attestationProviders } from '#shared/core/attestation/steps.ts'
import {
  checkedEvidenceBytesMax,
  evidenceCharactersMax,
} from '#shared/core/base/limits/attestation.ts'
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { checkEvidence } from '#shared/core/installs/check-evidence.ts'
import { type RevokedSerials, toStatusList } from '#shared/core/installs/revoked-serials.ts'
import { findPlayKeys, type ShownApp } from '#shared/core/installs/tenant-apps.ts'
import type { FindRoots } from '#shared/io/attestation/test-roots.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { unsealKeys } from '#shared/io/tenants/directory/tenant-apps.ts'
import { listApps, listSealedPlayKeys } from '#shared/io/tenants/tenant-app-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type AttestationCheckDeps = {
  postgres: Postgres
  sealer: Sealer
  /** The status list in force; null without one. */
  revokedSerials: () => RevokedSerials | null
  findRoots: FindRoots
  /** The wall clock. */
  wallMs: () => number
}

const base64Max = (bytes: number) => Math.ceil(bytes / 3) * 4

const checkBody = z.strictObject({
  evidence_base64: z
    .base64()
    .max(base64Max(checkedEvidenceBytesMax))
    .describe(
      'the bytes of a file: a chain in PEM, an App Attest object, a Play token, or the evidence of ' +
        'a registration in JSON',
    ),
  provider: z.enum(attestationProviders).optional().describe('instead of recognising it'),
  challenge: z
    .string()
    .max(evidenceCharactersMax)
    .optional()
    .describe('the challenge that it must be for, in base64; else reported and not judged'),
  body_base64: z
    .base64()
    .max(base64Max(bodyBytesMax))
    .optional()
    .describe('the body that an assertion signs, or that a Play token is for'),
  public_key_base64: z
    .base64()
    .max(4_096)
    .optional()
    .describe(
      'the attested key of an assertion: a file with PEM, or with DER as it is or in base64',
    ),
  at: z.iso
    .datetime({ offset: true })
    .optional()
    .describe('the moment to check at; now by default'),
})
type CheckBody = z.output<typeof checkBody>

const checkSchema = z.object({
  tenant_id: z.string(),
  provider: z.enum(attestationProviders),
  verdict: z.enum(['verified', 'rejected']),
  reason: z.string().nullable().describe('of the first failed step'),
  level: z.enum(['strongbox', 'hardware', 'software', 'none']),
  facts: z
    .record(z.string(), z.unknown())
    .describe("what the evidence says; the sender's words when level is none"),
  steps: z.array(z.object({ step: z.string(), ok: z.boolean(), detail: z.string() })),
})

/** Adds the route. */
export function addAttestationCheckRoute(app: ConsoleApp, deps: AttestationCheckDeps): void {
  app.post(
    '/tenants/:tenant_id/attestation-check',
    {
      schema: {
        operationId: 'checkAttestation',
        tags: ['Attestation'],
        summary: 'Find out why evidence of a phone is rejected',
        description:
          "Runs the checks of the edges, with the tenant's apps, its Play keys and the status list. " +
          'Nothing of the evidence is stored. IMEI, serial number and unique id of a phone are ' +
          'left out of the answer.',
        params: tenantParams,
        body: checkBody,
        response: { 200: checkSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) => {
      const { environment } = await requireTenant(deps.postgres, tenantId)
      const check = await checkFileOf(deps, { tenantId, environment }, body)
      const { provider, verdict, reason, level } = check
      await insertAudit(deps.postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'attestation.checked',
        after: { provider, verdict, reason, level },
      })
      return { tenant_id: tenantId, ...check, facts: withoutPhoneIds(check.facts) }
    },
  )
}

const invalid = (path: string, message: string) =>
  new Problem('invalid_body', 'The evidence cannot be checked.', {
    errors: [{ path: `$.${path}`, message }],
  })

async function checkFileOf(
  deps: AttestationCheckDeps,
  { tenantId, environment }: { tenantId: string; environment: 'live' | 'sandbox' },
  body: CheckBody,
): Promise<AttestationCheck> {
  const { postgres, sealer: opener } = deps
  const recognized = recognizeFile(Buffer.from(body.evidence_base64, 'base64'), body.provider)
  if (recognized === null) {
    throw invalid(
      'evidence_base64',
      'must be a chain in PEM, an App Attest object, a Play token or the evidence of a registration',
    )
  }
  const { evidence, packageName } = recognized
  const kind = evidence.kind === 'assertion' ? 'app_attest' : evidence.kind
  if (body.provider !== undefined && body.provider !== kind) {
    throw invalid('provider', `is not that of the evidence, which is of ${kind}`)
  }
  const challenge = readChallenge(body.challenge) ?? recognized.challenge
  const signed = body.body_base64 === undefined ? null : Buffer.from(body.body_base64, 'base64')
  const apps = (await listApps(postgres, tenantId)).map(toAttested)
  if (evidence.kind === 'assertion') {
    const clientData = signed ?? challenge
    const publicKey = readPublicKey(body.public_key_base64)
    if (clientData === null) throw invalid('body_base64', 'must be what the assertion signs')
    return checkAssertion({ assertion: evidence.object, publicKey, clientData, apps })
  }
  const keys = (await listSealedPlayKeys(postgres, tenantId)).flatMap(({ app, sealed }) => {
    const texts = unsealKeys(app, sealed, { tenantId, opener })
    const opened = texts === null ? null : readPlayKeys(texts)
    return opened === null ? [] : [[app, opened] as const]
  })
  const revoked = deps.revokedSerials()
  const isForBody = evidence.kind === 'play_integrity' && signed !== null
  return checkEvidence(
    evidence,
    { challenge: isForBody ? hash('sha256', signed, 'buffer') : challenge },
    {
      apps,
      environment,
      playKeys: findPlayKeys(new Map(keys), packageName),
      statusList: revoked === null ? null : toStatusList(revoked),
      roots: deps.findRoots(environment),
      nowMs: body.at === undefined ? deps.wallMs() : Date.parse(body.at),
    },
  )
}

const toAttested = (app: ShownApp): AttestedApp =>
  app.platform === 'android'
    ? { platform: 'android', id: app.id, signers: app.signers }
    : { platform: 'ios', id: app.id, team: app.team!, allowsDevelopment: app.development }

function readChallenge(text: string | undefined): Buffer | null {
  if (text === undefined) return null
  const challenge = decodeBase64(text)
  if (challenge === null) throw invalid('challenge', 'must be base64, of either alphabet')
  return challenge
}

function readPublicKey(text: string | undefined): KeyObject {
  const why = 'must be the attested key: an assertion is checked with it'
  if (text === undefined) throw invalid('public_key_base64', why)
  const bytes = Buffer.from(text, 'base64')
  const key = readKeyFile(bytes)
  if (key === null) throw invalid('public_key_base64', why)
  return key
}

const phoneIds: ReadonlySet<string> = new Set([
  ...['attestation_id_imei', 'attestation_id_second_imei', 'attestation_id_meid'],
  ...['attestation_id_serial', 'unique_id'],
])

/** The facts without what names a phone, at any depth. */
function withoutPhoneIds(facts: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) => {
      if (phoneIds.has(name)) return []
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      return [[name, isObject ? withoutPhoneIds(value as Record<string, unknown>) : value]]
    }),
  )
}
