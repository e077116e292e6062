/** The route of the edges with their applied revisions. */
import type { EdgeList } from '#shared/io/tenants/directory/list-edges.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { edgesSchema } from '../http/schemas.ts'

export type EdgeRouteDeps = { listEdges: () => Promise<EdgeList> }

/** Adds the route. */
export function addEdgeRoutes(app: ConsoleApp, deps: EdgeRouteDeps): void {
  app.get(
    '/edges',
    {
      schema: {
        operationId: 'listEdges',
        tags: ['Submissions'],
        summary: 'The edges and the revision that each has applied',
        response: { 200: edgesSchema },
      },
    },
    async () => {
      const { revision, edges } = await deps.listEdges()
      return { revision, data: edges }
    },
  )
}
