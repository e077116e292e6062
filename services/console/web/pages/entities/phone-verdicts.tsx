/** What people said of the alerts of all installs of a phone, and who used these. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { IdText } from '../../components/id.tsx'
import { Skeleton } from '../../components/states.tsx'
import { loadPhone, phonesKey } from '../phone/phones.ts'
import { toVerdictText } from './verdicts.ts'

type Wanted = { tenant: string; phoneId: string }

const usePhone = ({ tenant, phoneId }: Wanted) =>
  useQuery({
    queryKey: [...phonesKey(tenant), phoneId],
    queryFn: () => loadPhone(tenant, phoneId),
    // What is open is settled without it all the same.
    retry: false,
  })

const notRead = <span className="text-muted">cannot be read now</span>
const loading = <Skeleton className="my-1 w-40" />

/** `31 alerts, 24 confirmed`, with a link to the phone. */
export function PhoneVerdicts({ tenant, phoneId }: Wanted) {
  const { data, isError } = usePhone({ tenant, phoneId })
  if (data === undefined) return isError ? notRead : loading
  return (
    <Link params={{ tenant, phoneId }} to="/t/$tenant/phones/$phoneId">
      {toVerdictText(data.alerts.verdicts)}
    </Link>
  )
}

/** Users that are named; how many more there are follows. */
const usersShown = 3

/** Who used any install of the phone, the latest first. */
export function PhoneUsers({ tenant, phoneId }: Wanted) {
  const { data, isError } = usePhone({ tenant, phoneId })
  if (data === undefined) return isError ? notRead : loading
  const { users, users_total: total } = data.phone
  if (total === 0) return <span className="text-muted">none was named</span>
  return (
    <span>
      {users.slice(0, usersShown).map(({ user_id: user }, at) => (
        <span key={user}>
          {at > 0 && ', '}
          <Link params={{ tenant, userId: user }} to="/t/$tenant/users/$userId">
            <IdText most={32} value={user} />
          </Link>
        </span>
      ))}
      {total > usersShown && ` and ${(total - usersShown).toLocaleString('en')} more`}
    </span>
  )
}
