/** Runs a query for all of its rows, and saves them as a file. */
import { api, ok } from '../../api/client.ts'

/**
 * @param name of the file
 * @throws ApiProblem
 */
export async function downloadCsv({
  tenant,
  statement,
  format,
  name,
}: {
  tenant: string
  statement: { sql: string; parameters: Record<string, string> }
  format: 'csv' | 'excel'
  name: string
}): Promise<void> {
  const blob = await ok(
    api.POST('/admin/v1/tenants/{tenant_id}/sql', {
      params: { path: { tenant_id: tenant } },
      body: { ...statement, format },
      parseAs: 'blob',
    }),
  )
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob as unknown as Blob)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
