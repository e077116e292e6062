/** Whom a case is about, with a link to its page. */
import { Link } from '@tanstack/react-router'
import { IdText } from '../../components/id.tsx'
import type { Case } from './case.ts'
import { subjectNames } from './case-words.ts'

export function SubjectLink({ shown: { tenant_id: tenant, subject } }: { shown: Case }) {
  const { kind, id } = subject
  const text = (
    <span className="min-w-0 break-all font-mono">
      <IdText value={id} />
    </span>
  )
  return (
    <>
      <span className="font-normal text-muted">{subjectNames[kind]}</span>
      {kind === 'phone' ? (
        <Link params={{ tenant, phoneId: id }} to="/t/$tenant/phones/$phoneId">
          {text}
        </Link>
      ) : kind === 'device' ? (
        <Link params={{ tenant, deviceId: id }} to="/t/$tenant/devices/$deviceId">
          {text}
        </Link>
      ) : (
        <Link params={{ tenant, userId: id }} to="/t/$tenant/users/$userId">
          {text}
        </Link>
      )}
    </>
  )
}
