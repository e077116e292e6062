/** Who of those who judge has a case open: the page says it while it is shown, and reads it. */
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, ok } from '../../api/client.ts'
import { useSignedIn } from '../../shell/operator.ts'

/** The server forgets who has not told it for 30 s. */
const tellMs = 10_000

export function Presence({ caseId }: { caseId: string }) {
  const { operator } = useSignedIn()
  const path = { case_id: caseId }
  const presence = useQuery({
    queryKey: ['presence', caseId],
    queryFn: () => ok(api.PUT('/admin/v1/cases/{case_id}/presence', { params: { path } })),
    refetchInterval: tellMs,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  })
  useEffect(() => {
    // A tab that is closed ends other calls.
    const leave = () => {
      const path = { case_id: caseId }
      api
        .DELETE('/admin/v1/cases/{case_id}/presence', { params: { path }, keepalive: true })
        .catch(() => undefined)
    }
    addEventListener('pagehide', leave)
    return () => {
      removeEventListener('pagehide', leave)
      leave()
    }
  }, [caseId])
  const others = (presence.data?.here ?? []).filter((one) => one.operator !== operator.email)
  return (
    <span aria-live="polite" className="contents">
      {others.length > 0 && (
        <span className="inline-flex items-center gap-1.5 text-warn">
          <span aria-hidden="true" className="size-2 rounded-full bg-warn" />
          {toText(others.map((one) => one.operator))}
        </span>
      )}
    </span>
  )
}

function toText(emails: readonly string[]): string {
  const names = emails.map((email) => email.split('@')[0]!)
  if (names.length === 1) return `${names[0]} is here`
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)} are here`
}
