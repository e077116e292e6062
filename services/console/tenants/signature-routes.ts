/** The route of the signature debugger: why a signature of a body is refused. */
import { z } from 'zod'
import { bodyBytesMax } from '#shared/core/base/limits/http.ts'
import { type CheckedSecrets, checkSignature } from '#shared/core/telemetry/signature-check.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { findSealedSecrets } from '#shared/io/tenants/credential-store.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from './manage-tenants.ts'

type SignatureRouteDeps = { postgres: Postgres; sealer: Sealer }

/** Room for the body, and for what makes it too large to be clear. */
const bodyCharactersMax = 2 * bodyBytesMax

const signatureBody = z
  .strictObject({
    body: z.string().max(bodyCharactersMax).optional().describe('as text'),
    body_base64: z
      .base64()
      .max(bodyCharactersMax)
      .optional()
      .describe('the bytes, where text would change them'),
    signature: z.string().max(8_192).describe('the value of X-Service-Signature; empty for none'),
  })
  .refine(
    ({ body, body_base64 }) => (body === undefined) !== (body_base64 === undefined),
    'must have one of body and body_base64',
  )
  .meta({ examples: [{ body: '{"tenant_id":"acme"}', signature: 'W1vJH1Lq4B0i4uB9' }] })

const signatureCheckSchema = z.object({
  tenant_id: z.string(),
  valid: z.boolean().describe('whether an edge accepts the signature'),
  signature_form: z.string().describe('the form of the header, as every 401 says it'),
  received: z.object({ bytes: z.number().int(), sha256: z.string() }),
  findings: z
    .array(z.object({ code: z.string(), text: z.string() }))
    .describe('what is wrong, and what to do'),
  body_errors: z
    .array(z.object({ path: z.string(), message: z.string() }))
    .describe('what the 400 would list once the signature is right'),
})

/** Adds the route. */
export function addSignatureRoutes(app: ConsoleApp, deps: SignatureRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/signature-check',
    {
      schema: {
        operationId: 'checkSignature',
        tags: ['Submissions'],
        summary: 'Find out why a signature of a submission is refused',
        description: 'Nothing of the body is stored. The answer holds no secret and no signature.',
        params: tenantParams,
        body: signatureBody,
        response: { 200: signatureCheckSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, body, principal }) => {
      const tenant = await requireTenant(deps.postgres, tenantId)
      const bytes =
        body.body_base64 === undefined
          ? Buffer.from(body.body ?? '')
          : Buffer.from(body.body_base64, 'base64')
      const secrets = await openSecrets(deps, tenantId)
      const isActive = tenant.status === 'active'
      const check = checkSignature(bytes, body.signature, { tenantId, isActive, secrets })
      await insertAudit(deps.postgres, {
        actor: actorOf(principal),
        tenantId,
        action: 'signature.checked',
        after: { valid: check.valid, findings: check.findings.map(({ code }) => code) },
      })
      return { tenant_id: tenantId, ...check }
    },
  )
}

async function openSecrets(
  { postgres, sealer }: SignatureRouteDeps,
  tenantId: string,
): Promise<CheckedSecrets> {
  const sealed = await findSealedSecrets(postgres, tenantId)
  const open = (kind: 'hmac' | 'webhook', isRetired: boolean): string | null => {
    const found = sealed.find((one) => one.kind === kind && one.isRetired === isRetired)
    return found === undefined ? null : sealer.unseal(found.sealed, { tenantId, kind })
  }
  return {
    hmac: open('hmac', false),
    previous: open('hmac', true),
    webhook: open('webhook', false),
  }
}
