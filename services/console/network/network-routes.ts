/** The route of the network data: what the files of `NETWORK_DATA` give, and which are broken. */
import { networkDataSchema } from '#shared/core/network/network-status.ts'
import type { NetworkData } from '#shared/io/network/network-data.ts'
import type { ConsoleApp } from '../http/admin-app.ts'

export type NetworkRouteDeps = { networkData: Pick<NetworkData, 'status'> }

/** Adds the route. */
export function addNetworkRoutes(app: ConsoleApp, deps: NetworkRouteDeps): void {
  app.get(
    '/network',
    {
      schema: {
        operationId: 'findNetworkData',
        tags: ['Submissions'],
        summary: 'The files of network data, as the console reads them',
        response: { 200: networkDataSchema },
      },
    },
    async () => {
      const files = deps.networkData.status()
      return { is_on: files !== null, data: files ?? [] }
    },
  )
}
