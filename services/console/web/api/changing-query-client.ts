/**
 * A client of queries whose answers change by what the person does. `invalidateQueries` also drops
 * first reads that are still on their way: the library would keep their answer, which is older
 * than the change.
 */
import { QueryClient } from '@tanstack/query-core'

export class ChangingQueryClient extends QueryClient {
  override async invalidateQueries(
    ...[filters, options]: Parameters<QueryClient['invalidateQueries']>
  ): Promise<void> {
    await this.cancelQueries(filters)
    await super.invalidateQueries(filters, options)
  }
}
