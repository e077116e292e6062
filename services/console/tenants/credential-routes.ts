/** Routes that rotate credentials, and that set or switch off the webhook. */
import type { z } from 'zod'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import {
  rotateBody,
  rotatedSchema,
  tenantParams,
  webhookBody,
  webhookSchema,
} from '../http/schemas.ts'
import { type ManageDeps, setTenantWebhook } from './manage-tenants.ts'
import type { RotatedCredentials } from './report-demo-credentials.ts'
import type { RotationDeps, RotationRequest } from './rotation.ts'
import { rotateOnRecord } from './rotation-record.ts'

type CredentialRouteDeps = ManageDeps &
  RotationDeps & {
    /** Called with the new credentials, before the response. */
    onRotated?: (rotated: RotatedCredentials) => Promise<void>
  }

/** Adds the routes. */
export function addCredentialRoutes(app: ConsoleApp, deps: CredentialRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/rotate',
    {
      schema: {
        operationId: 'rotateCredentials',
        idempotency: 'refused',
        tags: ['Credentials'],
        summary: 'Rotate credentials; returns once the old ones are dead everywhere',
        description:
          'An empty body rotates the HMAC secret and the webhook secret. It goes on when the caller ' +
          'leaves; `/rotation` shows progress, and gives a person the new credentials for 15 ' +
          'minutes.',
        params: tenantParams,
        body: rotateBody,
        problems: ['conflict'],
        response: { 200: rotatedSchema },
      },
    },
    async ({ params, body, principal }) => {
      const actor = actorOf(principal)
      const wanted = { ...toRotation(body), tenantId: params.tenant_id, actor }
      const rotated = await rotateOnRecord(deps, wanted, principal?.kind === 'operator')
      await deps.onRotated?.(rotated)
      return rotated
    },
  )
  app.put(
    '/tenants/:tenant_id/webhook',
    {
      schema: {
        operationId: 'setWebhook',
        tags: ['Webhooks'],
        summary: 'Set the webhook URL and switch the webhook on',
        params: tenantParams,
        body: webhookBody,
        problems: ['conflict', 'webhook_url_refused'],
        response: { 200: webhookSchema },
      },
    },
    async ({ params, body, principal }) =>
      setTenantWebhook(deps, {
        tenantId: params.tenant_id,
        url: body.url,
        actor: actorOf(principal),
      }),
  )
  app.delete(
    '/tenants/:tenant_id/webhook',
    {
      schema: {
        operationId: 'removeWebhook',
        tags: ['Webhooks'],
        summary: 'Switch the webhook off',
        params: tenantParams,
        problems: ['conflict'],
        response: { 200: webhookSchema },
      },
    },
    async ({ params, principal }) =>
      setTenantWebhook(deps, { tenantId: params.tenant_id, url: null, actor: actorOf(principal) }),
  )
}

/** Which credentials a body rotates; an empty one rotates the HMAC and the webhook secret. */
export function toRotation(
  body: z.infer<typeof rotateBody>,
): Pick<RotationRequest, 'hmac' | 'webhook' | 'apiKey'> {
  const { hmac = false, webhook = false, api_key: apiKey = false } = body ?? {}
  const secrets = hmac || webhook || apiKey ? { hmac, webhook } : { hmac: true, webhook: true }
  return { ...secrets, apiKey }
}
