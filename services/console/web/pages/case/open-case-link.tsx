/** A link to the case of a device, a user or a phone that is open; nothing without one. */
import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, ok } from '../../api/client.ts'
import { buttonClasses } from '../../components/button.tsx'
import type { Case } from './case.ts'

type Subject = Case['subject']

/** Cases whose subject has this in its id; more than one only when one id is a part of others. */
const foundMax = 20

const openCaseOf = (tenant: string, { kind, id }: Subject) => ({
  queryKey: ['cases-of', tenant, kind, id],
  queryFn: async () => {
    const query = { subject_kind: kind, q: id, state: 'OPEN,SNOOZED', limit: foundMax }
    const { data } = await ok(
      api.GET('/admin/v1/tenants/{tenant_id}/cases', {
        params: { path: { tenant_id: tenant }, query },
      }),
    )
    return data.find(({ subject }) => subject.id === id) ?? null
  },
})

/** @param subjects in their order: the first with an open case is shown */
export function OpenCaseLink({
  tenant,
  subjects,
}: {
  tenant: string
  subjects: readonly Subject[]
}) {
  const found = useQueries({ queries: subjects.map((subject) => openCaseOf(tenant, subject)) })
  const shown = found.map(({ data }) => data).find((one) => one !== undefined && one !== null)
  if (shown === undefined || shown === null) return null
  return (
    <Link
      className={`${buttonClasses()} no-underline!`}
      params={{ tenant }}
      search={{ case: shown.case_id }}
      to="/t/$tenant/cases"
    >
      Open case
    </Link>
  )
}
