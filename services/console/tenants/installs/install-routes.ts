/** Routes of installs: rotate the install root, and switch the tenant's own secret off or on. */
import { z } from 'zod'
import { rotatedRootSchema } from '#shared/core/installs/rotated-root.ts'
import { actorOf, type ConsoleApp } from '../../http/admin-app.ts'
import { tenantParams } from '../../http/schemas.ts'
import type { ManageDeps } from '../manage-tenants.ts'
import { dropOldInstallRoot, rotateInstallRoot, setSharedSecret } from './install-roots.ts'

/** Adds the routes. */
export function addInstallRoutes(app: ConsoleApp, deps: ManageDeps): void {
  app.post(
    '/tenants/:tenant_id/install-root/rotate',
    {
      schema: {
        operationId: 'rotateInstallRoot',
        idempotency: 'refused',
        tags: ['Credentials'],
        summary: 'Make a new install root; returns once every edge makes tokens with it',
        description:
          'Installs with tokens of the root before go on, until it is dropped or the root is ' +
          'rotated again: they renew within 30 days. No install is refused meanwhile.',
        params: tenantParams,
        body: z.strictObject({}).nullish(),
        problems: ['conflict'],
        response: { 200: rotatedRootSchema },
      },
    },
    async ({ params, principal }) =>
      rotateInstallRoot(deps, { tenantId: params.tenant_id, actor: actorOf(principal) }),
  )
  app.delete(
    '/tenants/:tenant_id/install-root/previous',
    {
      schema: {
        operationId: 'dropPreviousInstallRoot',
        tags: ['Credentials'],
        summary: 'End the install root before; returns once every edge refuses its tokens',
        description: 'Installs that have not renewed since the rotation must register again.',
        params: tenantParams,
        problems: ['conflict'],
        response: { 200: rotatedRootSchema },
      },
    },
    async ({ params, principal }) =>
      dropOldInstallRoot(deps, { tenantId: params.tenant_id, actor: actorOf(principal) }),
  )
  app.put(
    '/tenants/:tenant_id/shared-secret',
    {
      schema: {
        operationId: 'setSharedSecret',
        tags: ['Credentials'],
        summary: 'Switch telemetry that the HMAC secret itself signs off or on',
        description:
          'Off, every edge answers it with 401 once this returns, batches included. ' +
          'Registrations go on, and so does what installs sign with their own keys.',
        params: tenantParams,
        body: z.strictObject({ off: z.boolean() }),
        problems: ['conflict'],
        response: { 200: z.object({ tenant_id: z.string(), shared_secret_off: z.boolean() }) },
      },
    },
    async ({ params, body, principal }) =>
      setSharedSecret(deps, {
        tenantId: params.tenant_id,
        actor: actorOf(principal),
        off: body.off,
      }),
  )
}
