/** The routes that set which address of a tenant's clients counts, and whether events keep it. */
import { z } from 'zod'
import { actorOf, type ConsoleApp } from '../../http/admin-app.ts'
import { clientAddressSchema, storeClientAddressSchema, tenantParams } from '../../http/schemas.ts'
import { changeSetting, type ManageDeps } from '../manage-tenants.ts'

/** Adds the routes. */
export function addClientAddressRoutes(app: ConsoleApp, deps: ManageDeps): void {
  app.put(
    '/tenants/:tenant_id/client-address',
    {
      schema: {
        operationId: 'setClientAddress',
        tags: ['Tenants'],
        summary: 'Set which address of a client counts; returns once it does at every edge',
        description:
          'With `body` the optional member `client_ip` of a body that the tenant’s own secret signed ' +
          'counts, and the address of the connection does not: for a tenant whose backend passes ' +
          'telemetry on.',
        params: tenantParams,
        body: z.strictObject({ client_address: clientAddressSchema }),
        problems: ['conflict'],
        response: {
          200: z.object({ tenant_id: z.string(), client_address: clientAddressSchema }),
        },
      },
    },
    async ({ params, body, principal }) => {
      const of = { tenantId: params.tenant_id, actor: actorOf(principal) }
      await changeSetting(deps, of, {
        name: 'client_address',
        value: body.client_address,
        action: 'tenant.client_address_set',
      })
      return { tenant_id: of.tenantId, ...body }
    },
  )
  app.put(
    '/tenants/:tenant_id/store-client-address',
    {
      schema: {
        operationId: 'setStoreClientAddress',
        tags: ['Tenants'],
        summary: 'Set whether events keep the full address of their client',
        description:
          'Off, events keep its network and a hash under a key of the tenant. Events that have a full ' +
          'address keep it until they expire or are erased.',
        params: tenantParams,
        body: z.strictObject({ store_client_address: storeClientAddressSchema }),
        problems: ['conflict'],
        response: {
          200: z.object({ tenant_id: z.string(), store_client_address: storeClientAddressSchema }),
        },
      },
    },
    async ({ params, body, principal }) => {
      const of = { tenantId: params.tenant_id, actor: actorOf(principal) }
      await changeSetting(deps, of, {
        name: 'store_client_address',
        value: body.store_client_address,
        action: 'tenant.store_client_address_set',
      })
      return { tenant_id: of.tenantId, ...body }
    },
  )
}
